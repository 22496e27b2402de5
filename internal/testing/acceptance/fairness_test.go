// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

const fairnessRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: greedy, namespace: NAMESPACE}, {kind: ServiceAccount, name: modest, namespace: NAMESPACE}]
`

// The bounds of the gateway of TestFairness.
const (
	maxFairLists     = 8
	maxFairStreams   = 1000
	maxFairSelectors = 100
	maxFairBuffered  = 64 << 20
)

// fairGateway is a gateway in shared mode, with two ServiceAccounts that may read
// everything.
type fairGateway struct {
	*clustertest.Gateway
	ns    string
	roots *x509.CertPool
}

func startFairGateway(t *testing.T, flags ...string) *fairGateway {
	t.Helper()
	ns := namespace(t)
	for _, name := range []string{"greedy", "modest"} {
		kubectl(t, "-n", ns, "create", "serviceaccount", name)
	}
	apply(t, strings.ReplaceAll(fairnessRole, "NAMESPACE", ns))
	g := startShared(t, flags...)
	return &fairGateway{Gateway: g.Gateway, ns: ns, roots: g.Roots}
}

// A fairUser is a client with a token.
type fairUser struct {
	g      *fairGateway
	token  string
	client *http.Client
}

// user returns a client of a ServiceAccount with a new token, which connects from the given
// address and has small buffers if it reads slowly.
func (f *fairGateway) user(t *testing.T, name, from string, http2, slow bool) *fairUser {
	t.Helper()
	token := strings.TrimSpace(kubectl(t, "-n", f.ns, "create", "token", name))
	return f.withToken(t, token, from, http2, slow)
}

func (f *fairGateway) withToken(t *testing.T, token, from string, http2, slow bool) *fairUser {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: f.roots}, ForceAttemptHTTP2: http2, DisableCompression: slow, MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err == nil && slow {
				err = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			}
			return conn, err
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &fairUser{f, token, &http.Client{Transport: transport}}
}

func (u *fairUser) open(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.g.URL+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+u.token)
	return u.client.Do(req)
}

// mayRead waits until the API servers know the user's rights.
func (u *fairUser) mayRead(t *testing.T) {
	t.Helper()
	eventually(t, "a list", func() bool {
		resp, err := u.open(t.Context(), "/api/v1/namespaces/"+u.g.ns+"/configmaps?limit=1&resourceVersion=0")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// fairCodes counts answers: by code, and 429s by the flag that their message names.
type fairCodes struct {
	mu sync.Mutex
	of map[string]int
}

var flagIn = regexp.MustCompile(`\(--([a-z-]+)\)`)

// note reads an answer to its end unless it is a stream that was opened.
func (c *fairCodes) note(t *testing.T, resp *http.Response) string {
	key := strconv.Itoa(resp.StatusCode)
	if resp.StatusCode == http.StatusTooManyRequests {
		body, _ := io.ReadAll(resp.Body) // an incomplete one has no flag
		var s metav1.Status
		flag := flagIn.FindStringSubmatch(string(body))
		if json.Unmarshal(body, &s) != nil || flag == nil || s.Reason != metav1.StatusReasonTooManyRequests || resp.Header.Get("Retry-After") == "" {
			t.Errorf("a 429 without its bound: %s %v", body, resp.Header)
			return key
		}
		key += " " + flag[1]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[key]++
	return key
}

func (c *fairCodes) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.of)
}

func (c *fairCodes) count(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[key]
}

// metric returns the sum of the samples of a metric whose labels contain a text.
func (f *fairGateway) metric(t *testing.T, name, labels string) (sum float64) {
	t.Helper()
	_, text := get(t, http.DefaultClient, f.Admin+"/metrics")
	for line := range strings.Lines(text) {
		metric, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if got, of, _ := strings.Cut(metric, "{"); got == name && strings.Contains(of, labels) {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// work is what the modest user does: lists and events, all of which have to succeed. It
// prints their latencies.
func (u *fairUser) work(t *testing.T, when string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	path := "/api/v1/namespaces/" + u.g.ns + "/configmaps"
	resp, err := u.open(ctx, path+"?watch=1&labelSelector=of%3Dmodest")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	frames := watchread.Lines(resp.Body)
	var lists, consistent, events []time.Duration
	read := func(query string) time.Duration {
		start := time.Now()
		resp, err := u.open(ctx, path+"?labelSelector=of%3Dmodest"+query)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: a list: %s %.300s %v", when, resp.Status, body, err)
		}
		return time.Since(start)
	}
	for n := range 40 {
		lists = append(lists, read("&resourceVersion=0"))
		consistent = append(consistent, read(""))
		if n%4 != 0 {
			continue
		}
		name := fmt.Sprintf("%s-%d", when, n)
		start := time.Now()
		if _, err := api.CoreV1().ConfigMaps(u.g.ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"of": "modest"}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for {
			frame, err := frames.Next()
			if err != nil {
				t.Fatalf("%s: the watch ends before %s: %v", when, name, err)
			}
			if frame.Type == "ADDED" && strings.Contains(string(frame.Object), `"name":"`+name+`"`) {
				break
			}
		}
		events = append(events, time.Since(start))
	}
	for what, of := range map[string][]time.Duration{"cached lists": lists, "consistent lists": consistent, "writes to events": events} {
		slices.Sort(of)
		t.Logf("%s: %s: p50 %v, p99 %v", when, what, of[len(of)/2].Round(10*time.Microsecond), of[len(of)*99/100].Round(10*time.Microsecond))
	}
}

// TestFairness: a user who takes all that it can gets 429s at its bounds, and another one
// gets all that it asks for.
func TestFairness(t *testing.T) {
	clustertest.SkipShort(t)
	g := startFairGateway(t, "--max-lists-per-user", fmt.Sprint(maxFairLists), "--max-streams-per-user", fmt.Sprint(maxFairStreams),
		"--max-selectors-per-user", fmt.Sprint(maxFairSelectors), "--max-buffered-per-user", fmt.Sprint(maxFairBuffered))
	const objects, size = 24, 512 << 10 // 12 MiB: more than the buffers of a connection
	for n := range objects {
		if _, err := api.CoreV1().ConfigMaps(g.ns).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("large-", n)}, Data: map[string]string{"a": strings.Repeat("large ", size/6)},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	path := "/api/v1/namespaces/" + g.ns + "/configmaps"
	modest, greedy := g.user(t, "modest", "127.0.0.1", true, false), g.user(t, "greedy", "127.0.0.1", true, false)
	modest.mayRead(t)
	greedy.mayRead(t)
	modest.work(t, "alone")

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	codes := &fairCodes{of: map[string]int{}}
	// watches opens watches until ctx ends, and returns how they were answered.
	watches := func(n int, path func(int) string) map[string]int {
		opened := make(chan string, n)
		limit := make(chan struct{}, 100)
		for i := range n {
			limit <- struct{}{}
			running.Go(func() {
				resp, err := greedy.open(ctx, path(i))
				<-limit
				if err != nil {
					t.Error(err)
					opened <- "error"
					return
				}
				defer resp.Body.Close()
				opened <- codes.note(t, resp)
				_, _ = io.Copy(io.Discard, resp.Body) // until the end of the test
			})
		}
		all := map[string]int{}
		for range n {
			all[<-opened]++
		}
		return all
	}
	list, err := api.CoreV1().ConfigMaps(g.ns).List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	rv := list.ResourceVersion
	selected := watches(maxFairSelectors+10, func(n int) string {
		return fmt.Sprintf("%s?watch=1&resourceVersion=%s&labelSelector=n%%3D%d", path, rv, n)
	})
	if selected["200"] != maxFairSelectors || selected["429 max-selectors-per-user"] != 10 {
		t.Errorf("watches with selectors: %v", selected)
	}
	open := watches(maxFairStreams-maxFairSelectors+25, func(int) string { return "/api/v1/configmaps?watch=1&resourceVersion=" + rv })
	if open["200"] != maxFairStreams-maxFairSelectors || open["429 max-streams-per-user"] != 25 {
		t.Errorf("watches: %v", open)
	}
	inner := url.QueryEscape(path + "?watch=1&resourceVersion=0")
	if resp, err := greedy.open(ctx, "/watchkeeper/v1/multiwatch?watch="+inner+"&watch="+inner); err != nil {
		t.Error(err)
	} else {
		if got := codes.note(t, resp); got != "429 max-streams-per-user" {
			t.Errorf("a multiwatch: %s", got)
		}
		resp.Body.Close()
	}

	// Slow readers hold as many bytes as the user may have.
	slow := g.user(t, "greedy", "127.0.0.1", false, true)
	held := 0
	for range 10 {
		resp, err := slow.open(ctx, path+"?resourceVersion=0")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if codes.note(t, resp) == "200" {
			held++
		}
	}
	bytes := g.metric(t, "watchkeeper_user_buffered_bytes", "")
	t.Logf("%d slow readers hold %.0f bytes", held, bytes)
	if held != maxFairBuffered/(objects*size) || bytes > maxFairBuffered || bytes < float64(held*objects*size) {
		t.Errorf("%d slow readers hold %.0f bytes", held, bytes)
	}

	// The lists of 32 connections, of small objects and of all.
	var requests atomic.Int64
	for n := range 32 {
		running.Go(func() {
			conn := g.withToken(t, greedy.token, "127.0.0.1", false, false)
			paths := []string{path + "?resourceVersion=0&labelSelector=of%3Dmodest", path + "?resourceVersion=0", path, "/api/v1/configmaps?resourceVersion=0"}
			for i := n; ctx.Err() == nil; i++ {
				resp, err := conn.open(ctx, paths[i%len(paths)])
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				requests.Add(1)
				codes.note(t, resp)
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	// More lists at once than may wait; again, if the processors have not sent enough of them
	// while the first ones lasted.
	running.Go(func() {
		for ctx.Err() == nil && codes.count("429 max-lists-per-user") == 0 {
			var burst sync.WaitGroup
			for range 100 {
				burst.Go(func() {
					resp, err := greedy.open(ctx, path+"?resourceVersion=0&labelSelector=of%3Dmodest")
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
						}
						return
					}
					codes.note(t, resp)
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				})
			}
			burst.Wait()
		}
	})
	done := make(chan struct{})
	sampled := make(chan float64)
	go func() {
		highest := 0.0
		for {
			highest = max(highest, g.metric(t, "watchkeeper_user_buffered_bytes", ""))
			select {
			case <-done:
				sampled <- highest
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	modest.work(t, "beside-a-greedy-user")
	close(done)
	highest := <-sampled
	t.Logf("the greedy user: %d lists in loops; all answers: %v; at most %.0f bytes were held", requests.Load(), codes, highest)
	if highest > maxFairBuffered+1<<20 { // with those of the modest user
		t.Errorf("%.0f bytes were held", highest)
	}
	eventually(t, "a list that is refused", func() bool { return codes.count("429 max-lists-per-user") > 0 })
	streams := g.metric(t, "watchkeeper_user_streams", `class="serviceaccount"`)
	if streams < maxFairStreams || streams > maxFairStreams+1 {
		t.Errorf("%.0f streams", streams)
	}
	cancel()
	running.Wait()
	for key := range codes.of {
		if key != "200" && !strings.HasPrefix(key, "429 ") {
			t.Errorf("answers of the greedy user: %v", codes)
		}
	}
	eventually(t, "nothing that is open", func() bool {
		return g.metric(t, "watchkeeper_user_streams", "") == 0 && g.metric(t, "watchkeeper_user_buffered_bytes", "") == 0
	})
	for flag, bound := range map[string]string{"lists": "lists", "selectors": "selectors", "buffered": "bytes"} {
		want := codes.count("429 max-" + flag + "-per-user")
		if got := g.metric(t, "watchkeeper_user_rejected_total", `bound="`+bound+`",class="serviceaccount"`); got < float64(want) || want == 0 {
			t.Errorf("%.0f rejections by %s, and %d answers", got, bound, want)
		}
	}
}

// TestTokenFlood: made-up tokens from one address do not keep users at another one from
// being authenticated for the first time.
func TestTokenFlood(t *testing.T) {
	g := startFairGateway(t)
	g.user(t, "modest", "127.0.0.1", true, false).mayRead(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var refused, busy atomic.Int64
	for n := range 48 {
		running.Go(func() {
			u := g.withToken(t, "", "127.0.0.2", false, false)
			for i := 0; ctx.Err() == nil; i++ {
				u.token = fmt.Sprintf("made-up-%d-%d", n, i)
				resp, err := u.open(ctx, "/api/v1/configmaps")
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				switch resp.StatusCode {
				case http.StatusUnauthorized:
					refused.Add(1)
				case http.StatusTooManyRequests:
					busy.Add(1)
				default:
					t.Error(resp.Status)
				}
			}
		})
	}
	var took []time.Duration
	for range 10 {
		u := g.user(t, "modest", "127.0.0.1", true, false)
		start := time.Now()
		resp, err := u.open(t.Context(), "/api/v1/namespaces/"+g.ns+"/configmaps?resourceVersion=0")
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Errorf("a user with a new token: %s", resp.Status)
		}
		took = append(took, time.Since(start).Round(time.Millisecond))
	}
	cancel()
	running.Wait()
	t.Logf("%d made-up tokens were refused, %d got a 429; first requests with new tokens took %v", refused.Load(), busy.Load(), took)
	if refused.Load() < 100 {
		t.Error("that was no flood")
	}
}
