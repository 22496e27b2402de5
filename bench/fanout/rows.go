// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
)

const (
	micro = 1e-3 // nanoseconds to microseconds
	milli = 1e-6
	kilo  = 1e-3 // bytes to 1,000 bytes
	mega  = 1e-6
)

// The API server serves TLS only, so the gateway's figures over plain HTTP/1.1 are
// compared with the API server's over TLS.
const overDirect, overTLS, overPlain = "via=direct/proto=http2", "via=gateway/proto=http2", "via=gateway/proto=http1"

// atMost returns a target relative to the API server's figure, 1/n, and its text.
func atMost(n float64) (float64, string) { return 1 / n, fmt.Sprintf("≤ 1/%g", n) }

// rows returns the rows of the table.
func rows(s sizes) []report.Row {
	var all []report.Row
	// against adds a row that compares a figure of the gateway, over one of its
	// protocols, with the API server's. The target is 1/n; 0 is none.
	against := func(title, unit string, scale float64, name, via, rest string, n float64) {
		row := report.Row{Title: title, Unit: unit, Scale: scale, Direct: name + "/" + overDirect + rest, Gateway: name + "/" + via + rest}
		if n > 0 {
			row.Target, row.Says = atMost(n)
		}
		all = append(all, row)
	}
	// alone adds a row with an absolute target; 0 is none.
	alone := func(title, unit string, scale float64, direct, gateway string, limit float64, says string) {
		all = append(all, report.Row{Title: title, Unit: unit, Scale: scale, Direct: direct, Gateway: gateway, Target: limit, Absolute: true, Says: says})
	}
	// bare adds a row that compares a figure with that of a process that only writes the
	// same bytes. limit is the largest ratio; 0 is none.
	bare := func(name, proto, unit string, limit float64) {
		key := func(via string) string { return name + "/via=" + via + "/proto=" + proto + " " + unit }
		row := report.Row{Title: "the same, beside a process that only writes", Unit: "µs", Scale: micro,
			Direct: key("baseline"), Beside: "only writes", Gateway: key("gateway"), Target: limit}
		if limit > 0 {
			row.Says = fmt.Sprintf("≤ %g", limit)
		}
		all = append(all, row)
	}
	watches := fmt.Sprintf("%d watches", s.watches)
	const toGo = "Delivery/via=%s/proto=go-http2 cpu-ns/delivery"
	usual := report.Row{Title: "CPU per delivery, " + watches + ", TLS HTTP/2, Go's client", Unit: "µs", Scale: micro, Direct: fmt.Sprintf(toGo, "direct"), Gateway: fmt.Sprintf(toGo, "gateway")}
	usual.Target, usual.Says = atMost(6)
	all = append(all, usual)
	against("CPU per delivery, "+watches+", TLS HTTP/2", "µs", micro, "Delivery", overTLS, " cpu-ns/delivery", 5)
	bare("Delivery", "http2", "cpu-ns/delivery", 0)
	against("CPU per delivery, "+watches+", plain HTTP/1.1", "µs", micro, "Delivery", overPlain, " cpu-ns/delivery", 0)
	bare("Delivery", "http1", "cpu-ns/delivery", 1.5)
	against(fmt.Sprintf("CPU per update, %d selective watches", s.selectors), "µs", micro, "Selective", overTLS, " cpu-ns/update", 150)
	bare("Selective", "http2", "cpu-ns/update", 0)
	against("memory per idle watch, TLS HTTP/2 (live heap and stacks)", "KB", kilo, "IdleWatch", overTLS, " live-B/watch", 8)
	against("memory per idle watch, plain HTTP/1.1 (live heap and stacks)", "KB", kilo, "IdleWatch", overPlain, " live-B/watch", 3)
	against("memory per idle watch, TLS HTTP/2 (RSS)", "KB", kilo, "IdleWatch", overTLS, " rss-B/watch", 3)
	against("memory per idle watch, plain HTTP/1.1 (RSS)", "KB", kilo, "IdleWatch", overPlain, " rss-B/watch", 3)
	list := fmt.Sprintf("LIST of %d Pods, RV=0, ", s.pods)
	against(list+"JSON: CPU", "ms", milli, "List", overTLS, "/form=json cpu-ns/op", 15)
	against(list+"JSON: wall", "ms", milli, "List", overTLS, "/form=json wall-ns/op", 8)
	against(list+"JSON, plain HTTP/1.1: CPU", "ms", milli, "List", overPlain, "/form=json cpu-ns/op", 0)
	against(list+"JSON, plain HTTP/1.1: wall", "ms", milli, "List", overPlain, "/form=json wall-ns/op", 0)
	for _, form := range []string{"table", "protobuf", "gzip"} {
		against(list+form+": CPU", "ms", milli, "List", overTLS, "/form="+form+" cpu-ns/op", 0)
		against(list+form+": wall", "ms", milli, "List", overTLS, "/form="+form+" wall-ns/op", 0)
	}
	against(fmt.Sprintf("LIST, label selector 10 of %d: CPU", s.pods), "ms", milli, "List", overTLS, "/form=selector cpu-ns/op", 20)
	against(fmt.Sprintf("LIST, label selector 10 of %d: wall", s.pods), "ms", milli, "List", overTLS, "/form=selector wall-ns/op", 20)
	alone(fmt.Sprintf("watches cut or events lost, of %d on connections of their own, 2 updates/s", s.own), "", 1, "", "Held/"+overPlain+" missed", 0.5, "0")
	alone(fmt.Sprintf("watches cut or events lost, of %d over HTTP/2, 1 update every 2 s", s.shared), "", 1, "", "Held/"+overTLS+" missed", 0.5, "0")
	alone("memory of the gateway with these: own connections", "MB", mega, "", "Held/"+overPlain+" rss-B", 0, "")
	alone("memory of the gateway with these: HTTP/2", "MB", mega, "", "Held/"+overTLS+" rss-B", 300, "≤ 300 MB")
	alone("latency added, 100 updates/s, 100 watches, p50", "ms", 1, "Latency/"+overDirect+"/rate=100 p50-ms", "Latency/"+overTLS+"/rate=100 p50-ms", 0, "")
	alone("latency added, 100 updates/s, 100 watches, p99", "ms", 1, "Latency/"+overDirect+"/rate=100 p99-ms", "Latency/"+overTLS+"/rate=100 p99-ms", 2, "≤ 2 ms")
	alone("latency added, 1,000 updates/s (fake API server), p50", "ms", 1, "", "Latency/"+overTLS+"/rate=1000 p50-ms", 0, "")
	alone("latency added, 1,000 updates/s (fake API server), p99", "ms", 1, "", "Latency/"+overTLS+"/rate=1000 p99-ms", 0, "")
	for _, recorded := range []struct{ key, title string }{{"false", ""}, {"true", ", recorded"}} {
		figure := func(unit string) string { return "Object/via=gateway/record=" + recorded.key + " " + unit }
		title := "memory per cached Pod" + recorded.title
		alone(title+", of its JSON (RSS)", "", 1, "", figure("rss/json"), 1.3, "≤ 1.3")
		alone(title+", of its JSON (RSS without the program's pages)", "", 1, "", figure("anon/json"), 1.3, "≤ 1.3")
		alone("the same after 2 updates of each", "", 1, "", figure("updated-anon/json"), 0, "")
	}
	handled := func(via, unit string) string { return "Handled/" + via + " " + unit }
	alone("from a PUT to an informer's handler, p50", "ms", 1, handled(overDirect, "p50-ms"), handled(overTLS, "p50-ms"), 0, "")
	alone("from a PUT to an informer's handler, p99", "ms", 1, handled(overDirect, "p99-ms"), handled(overTLS, "p99-ms"), 0, "")
	kubectl := fmt.Sprintf("kubectl get pods -A, %d Pods: ", s.pods)
	against(kubectl+"wall", "ms", milli, "Kubectl", overTLS, " wall-ns/op", 0)
	against(kubectl+"kubectl's CPU", "ms", milli, "Kubectl", overTLS, " kubectl-cpu-ns/op", 0)
	against(kubectl+"the server's CPU", "ms", milli, "Kubectl", overTLS, " cpu-ns/op", 0)
	informer := fmt.Sprintf("an informer of %d Pods (client-go): ", s.pods)
	against(informer+"wall until it is synced", "ms", milli, "Informer", overTLS, " wall-ns/op", 0)
	against(informer+"its CPU", "ms", milli, "Informer", overTLS, " client-cpu-ns/op", 0)
	against(informer+"its peak RSS", "MB", mega, "Informer", overTLS, " client-rss-B", 0)
	against(informer+"the server's CPU", "ms", milli, "Informer", overTLS, " cpu-ns/op", 0)
	against("the same, the first one", "ms", milli, "FirstInformer", overTLS, " cpu-ns/op", 0)
	return append(all, rates(s)...)
}

// rates returns the rows of figures of which more is better, and of the API server's
// own CPU.
func rates(s sizes) []report.Row {
	saturation := func(via string) string {
		return fmt.Sprintf("Saturation/%s/watches=%d deliveries/s", via, s.watches)
	}
	strain := func(via string) string { return fmt.Sprintf("Strain/%s/watches=%d cut", via, 2*s.watches) }
	update := func(via string, n int) string { return fmt.Sprintf("Update/%s/watches=%d upstream-cpu-ns/op", via, n) }
	// burst compares with a process that only writes the same bytes.
	burst := func(title, proto, unit string) report.Row {
		key := func(via string) string {
			return fmt.Sprintf("Burst/via=%s/proto=%s/watches=%d %s", via, proto, s.watches, unit)
		}
		return report.Row{Title: title, Direct: key("baseline"), Beside: "only writes", Gateway: key("gateway")}
	}
	burstCPU := func(proto string) report.Row {
		row := burst("CPU per delivery of these", proto, "cpu-ns/delivery")
		row.Unit, row.Scale = "µs", micro
		return row
	}
	overHTTP2 := burst("deliveries/s, a burst of the fake API server, TLS HTTP/2", "http2", "deliveries/s")
	overHTTP2.Target, overHTTP2.Absolute, overHTTP2.AtLeast, overHTTP2.Says = 500_000, true, true, "≥ 500000"
	return []report.Row{
		{Title: fmt.Sprintf("watches cut, of %d at 20 updates/s, TLS HTTP/2", 2*s.watches), Direct: strain(overDirect), Gateway: strain(overTLS)},
		{Title: "deliveries/s, updates as fast as possible, TLS HTTP/2", Direct: saturation(overDirect), Gateway: saturation(overTLS)},
		{Title: "deliveries/s, updates as fast as possible, plain HTTP/1.1", Direct: saturation(overDirect), Gateway: saturation(overPlain)},
		overHTTP2, burstCPU("http2"),
		burst("deliveries/s, a burst of the fake API server, plain HTTP/1.1", "http1", "deliveries/s"), burstCPU("http1"),
		{Title: fmt.Sprintf("events/s in, of %.0f (fake API server), no watch", s.ingestRate), Gateway: "Ingest/via=gateway/watches=0 events/s"},
		{Title: "CPU per event in, no watch", Unit: "µs", Scale: micro, Gateway: "Ingest/via=gateway/watches=0 cpu-ns/event"},
		{Title: fmt.Sprintf("events/s in, of %.0f (fake API server), one watch", s.ingestRate), Gateway: "Ingest/via=gateway/watches=1 events/s"},
		{Title: "CPU per event in, one watch", Unit: "µs", Scale: micro, Gateway: "Ingest/via=gateway/watches=1 cpu-ns/event"},
		{Title: "watches cut because they lagged behind the window", Gateway: "Ingest/via=gateway/watches=1 cut"},
		{Title: fmt.Sprintf("the API server's CPU per update, %d watches there or at the gateway", s.watches), Unit: "ms", Scale: milli,
			Direct: update(overDirect, s.watches), Gateway: update(overTLS, s.watches)},
		{Title: "the API server's CPU per update, one watch there or as many at the gateway", Unit: "ms", Scale: milli,
			Direct: update(overDirect, 1), Gateway: update(overTLS, s.watches)},
	}
}
