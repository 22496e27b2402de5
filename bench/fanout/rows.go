// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/watchkeeper/watchkeeper/bench/fanout/tally"
)

const (
	micro = 1e-3 // nanoseconds to microseconds
	milli = 1e-6
	kilo  = 1e-3 // bytes to 1,000 bytes
	mega  = 1e-6
)

// The API server is asked over TLS alone: what comes over plain HTTP/1.1 from
// the gateway is compared with that as well.
const direct, secure, plain = "via=direct/proto=http2", "via=gateway/proto=http2", "via=gateway/proto=http1"

// atMost is a target relative to the API server: one nth of its figure.
func atMost(n float64) (float64, string) { return 1 / n, fmt.Sprintf("≤ 1/%g", n) }

// rows is the table.
func rows() []tally.Row {
	s := size()
	var all []tally.Row
	row := func(title, unit string, scale float64, direct, gateway string, target float64, says string) {
		all = append(all, tally.Row{Title: title, Unit: unit, Scale: scale, Direct: direct, Gateway: gateway, Target: target, Says: says})
	}
	// against compares a figure of the gateway's over one of its protocols.
	against := func(title, unit string, scale float64, name, via, rest string, n float64) {
		var target float64
		var says string
		if n > 0 {
			target, says = atMost(n)
		}
		row(title, unit, scale, name+"/"+direct+rest, name+"/"+via+rest, target, says)
	}
	watches := fmt.Sprintf("%d watches", s.watches)
	against("CPU per delivery, "+watches+", TLS HTTP/2", "µs", micro, "Delivery", secure, " cpu-ns/delivery", 2.2)
	against("CPU per delivery, "+watches+", plain HTTP/1.1", "µs", micro, "Delivery", plain, " cpu-ns/delivery", 4)
	against(fmt.Sprintf("CPU per update, %d selective watches", s.selectors), "µs", micro, "Selective", secure, " cpu-ns/update", 100)
	against("memory per idle watch, TLS HTTP/2 (live heap and stacks)", "KB", kilo, "IdleWatch", secure, " live-B/watch", 3)
	against("memory per idle watch, plain HTTP/1.1 (live heap and stacks)", "KB", kilo, "IdleWatch", plain, " live-B/watch", 3)
	against("memory per idle watch, TLS HTTP/2 (RSS)", "KB", kilo, "IdleWatch", secure, " rss-B/watch", 3)
	against("memory per idle watch, plain HTTP/1.1 (RSS)", "KB", kilo, "IdleWatch", plain, " rss-B/watch", 3)
	list := fmt.Sprintf("LIST of %d Pods, RV=0, ", s.pods)
	against(list+"JSON: CPU", "ms", milli, "List", secure, "/form=json cpu-ns/op", 15)
	against(list+"JSON: wall", "ms", milli, "List", secure, "/form=json wall-ns/op", 8)
	against(list+"JSON, plain HTTP/1.1: CPU", "ms", milli, "List", plain, "/form=json cpu-ns/op", 0)
	against(list+"JSON, plain HTTP/1.1: wall", "ms", milli, "List", plain, "/form=json wall-ns/op", 0)
	for _, form := range []string{"table", "protobuf", "gzip"} {
		against(list+form+": CPU", "ms", milli, "List", secure, "/form="+form+" cpu-ns/op", 0)
		against(list+form+": wall", "ms", milli, "List", secure, "/form="+form+" wall-ns/op", 0)
	}
	against(fmt.Sprintf("LIST, label selector 10 of %d: CPU", s.pods), "ms", milli, "List", secure, "/form=selector cpu-ns/op", 20)
	against(fmt.Sprintf("LIST, label selector 10 of %d: wall", s.pods), "ms", milli, "List", secure, "/form=selector wall-ns/op", 20)
	row(fmt.Sprintf("watches cut or events lost, of %d on connections of their own, 2 updates/s", s.own), "", 1, "", "Held/"+plain+" missed", 0.5, "0")
	row(fmt.Sprintf("watches cut or events lost, of %d over HTTP/2, 1 update every 2 s", s.shared), "", 1, "", "Held/"+secure+" missed", 0.5, "0")
	row("memory of the gateway with these: own connections", "MB", mega, "", "Held/"+plain+" rss-B", 0, "")
	row("memory of the gateway with these: HTTP/2", "MB", mega, "", "Held/"+secure+" rss-B", 0, "")
	row("latency added, 100 updates/s, 100 watches, p50", "ms", 1, "", "Latency/"+secure+"/rate=100 p50-ms", 0, "")
	row("latency added, 100 updates/s, 100 watches, p99", "ms", 1, "", "Latency/"+secure+"/rate=100 p99-ms", 2, "≤ 2 ms")
	row("latency added, 1,000 updates/s (cannon), p50", "ms", 1, "", "Latency/"+secure+"/rate=1000 p50-ms", 0, "")
	row("latency added, 1,000 updates/s (cannon), p99", "ms", 1, "", "Latency/"+secure+"/rate=1000 p99-ms", 0, "")
	row("memory per cached Pod, of its JSON (RSS)", "", 1, "", "Object/via=gateway rss/json", 1.3, "≤ 1.3")
	row("the same after 2 updates of each", "", 1, "", "Object/via=gateway updated-rss/json", 0, "")
	return append(all, rates(s)...)
}

// rates are the rows of which more is better, and those of the API server.
func rates(s sizes) []tally.Row {
	saturation := func(via string) string {
		return fmt.Sprintf("Saturation/%s/watches=%d deliveries/s", via, s.watches)
	}
	update := func(via string, n int) string { return fmt.Sprintf("Update/%s/watches=%d upstream-cpu-ns/op", via, n) }
	burst := func(proto string) string {
		return fmt.Sprintf("Burst/via=gateway/proto=%s/watches=%d deliveries/s", proto, s.watches)
	}
	return []tally.Row{
		{Title: "deliveries/s, updates as fast as they go, TLS HTTP/2", Direct: saturation(direct), Gateway: saturation(secure)},
		{Title: "deliveries/s, updates as fast as they go, plain HTTP/1.1", Direct: saturation(direct), Gateway: saturation(plain)},
		{Title: "deliveries/s, a burst of the cannon, TLS HTTP/2", Gateway: burst("http2")},
		{Title: "deliveries/s, a burst of the cannon, plain HTTP/1.1", Gateway: burst("http1")},
		{Title: fmt.Sprintf("events/s in, of %.0f (cannon), no watch", s.flooding), Gateway: "Cannon/via=gateway/watches=0 events/s"},
		{Title: "CPU per event in, no watch", Unit: "µs", Scale: micro, Gateway: "Cannon/via=gateway/watches=0 cpu-ns/event"},
		{Title: fmt.Sprintf("events/s in, of %.0f (cannon), one watch", s.flooding), Gateway: "Cannon/via=gateway/watches=1 events/s"},
		{Title: "CPU per event in, one watch", Unit: "µs", Scale: micro, Gateway: "Cannon/via=gateway/watches=1 cpu-ns/event"},
		{Title: fmt.Sprintf("the API server's CPU per update, %d watches there or behind the gateway", s.watches), Unit: "ms", Scale: milli,
			Direct: update(direct, s.watches), Gateway: update(secure, s.watches)},
		{Title: "the API server's CPU per update, one watch there or as many behind the gateway", Unit: "ms", Scale: milli,
			Direct: update(direct, 1), Gateway: update(secure, s.watches)},
	}
}
