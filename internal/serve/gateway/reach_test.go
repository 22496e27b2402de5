// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatchAboveHead: a watch from the RV of a list that was passed through outlives a loss
// of the API server's history, although the head had not reached that RV when it began. Many
// such watches share the proofs.
func TestWatchAboveHead(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAPI, g *Gateway, client *http.Client) {
		head := podsOf(t, g).Timeline.View().RV
		f.elsewhere()
		rv := rvOf(t, read200(t, client, "/api/v1/pods?limit=3"))
		if rv <= head {
			t.Fatalf("the list is at %d, the head at %d", rv, head)
		}
		f.count("latest")
		const watches = 50
		first := make(chan string, watches)
		for range watches {
			resp, err := client.Get(fmt.Sprintf("http://localhost/api/v1/pods?watch=1&resourceVersion=%d", rv))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			go func() {
				line, _ := bufio.NewReader(resp.Body).ReadString('\n')
				first <- line
			}()
		}
		time.Sleep(5 * time.Second)
		if latest, probes := f.count("latest"), f.count("probe"); latest > 2 || probes > 2 {
			t.Errorf("%d watches: %d times the latest RV, %d probes", watches, latest, probes)
		}
		f.elsewhere()
		f.Expire()
		time.Sleep(5 * time.Second)
		last := f.write("d", "new", 10)
		for range watches {
			if line := <-first; !strings.HasPrefix(line, `{"type":"ADDED"`) || !strings.Contains(line, fmt.Sprintf(`"resourceVersion":"%d"`, last)) {
				t.Fatalf("from %d: %s", rv, line)
			}
		}
	})
}

// TestWatchFarAboveHead: an RV that the API server has not reached, as one of another
// cluster, costs one proof; and a client that watches from it again and again, a few.
func TestWatchFarAboveHead(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAPI, g *Gateway, client *http.Client) {
		read := func(seconds int) {
			read200(t, client, fmt.Sprintf("/api/v1/pods?watch=1&resourceVersion=%d&timeoutSeconds=%d", f.RV()+1e6, seconds))
		}
		for what, test := range map[string]struct{ watches, seconds, proofs int }{
			"one":   {1, 3600, 1},
			"a few": {300, 1, 300/5 + 1},
		} {
			podsOf(t, g)
			f.elsewhere()
			f.count("latest")
			f.count("probe")
			for range test.watches {
				read(test.seconds)
			}
			time.Sleep(time.Hour)
			if latest, probes := f.count("latest"), f.count("probe"); latest == 0 || latest > test.proofs || probes > latest {
				t.Errorf("%s: %d times the latest RV, %d probes", what, latest, probes)
			}
		}
		// Another client is not kept waiting for long.
		res := podsOf(t, g)
		watch := func(rv uint64, seconds int) {
			resp, err := client.Get(fmt.Sprintf("http://localhost/api/v1/pods?watch=1&resourceVersion=%d&timeoutSeconds=%d", rv, seconds))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body) // until it ends
		}
		go watch(f.RV()+1e6, 1)
		synctest.Wait()
		now := f.elsewhere()
		go watch(now, 60)
		time.Sleep(10 * time.Second)
		if v := res.Timeline.View(); v.RV < now {
			t.Errorf("the head is at %d, not at %d", v.RV, now)
		}
		time.Sleep(time.Minute)
	})
}
