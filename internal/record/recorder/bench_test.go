// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

var objects = flag.Int("objects", 10_000, "how many objects BenchmarkRestart has")

// BenchmarkRestart measures a start from the record, until a timeline can serve reads.
// Objects have 4.5 KB.
//
//	go test -run '^$' -bench Restart -benchtime 1x ./internal/record/recorder -args -objects 100000
func BenchmarkRestart(b *testing.B) {
	api := newFakeAPI(b)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range *objects {
		var text strings.Builder
		for text.Len() < 4300 {
			fmt.Fprintf(&text, `"f:field-%d":{".":{},"f:state":%d},`, text.Len(), rnd.IntN(1000))
		}
		api.write(fmt.Sprintf("pod-%06d", i), text.String())
	}
	dir := b.TempDir()
	start := func() *rig {
		r := api.recorder(b, nil)
		r.log = slog.New(slog.DiscardHandler)
		r.opts.Dir = dir
		return api.run(b, r)
	}
	g := start()
	for all := []*history.Stream(nil); len(all) == 0 || all[0].Head().RV < api.api.RV(); time.Sleep(10 * time.Millisecond) {
		all = g.r.Store().Streams(pods) // recording may take long
	}
	g.stop()
	api.counts()
	for b.Loop() {
		g := start()
		res := g.cache.Acquire(b.Context(), pods)
		if v := res.StateFor(b.Context(), request.List).View; v.Len() != *objects {
			b.Fatalf("%d objects", v.Len())
		}
		b.StopTimer()
		res.Release()
		g.stop()
		b.StartTimer()
	}
	if lists, _ := api.counts(); lists > 0 {
		b.Errorf("%d lists", lists)
	}
}
