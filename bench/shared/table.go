// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
)

const (
	micro = 1e-3
	kilo  = 1e-3
	mega  = 1e-6
)

// maxPerMinute is the target for the reviews of a right, in a minute: the gateway checks
// about every minute.
const maxPerMinute = 1.1

// goals returns the rows of the table.
func goals(s sizes) []report.Goal {
	var all []report.Goal
	for _, protocol := range []string{"http1", "http2"} {
		for _, form := range []string{"list", "get"} {
			of := fmt.Sprintf("/proto=%s/form=%s cpu-ns/op", protocol, form)
			title := fmt.Sprintf("CPU per cached %s, %s: ", form, protocol)
			all = append(all,
				report.Goal{Title: title + "local mode", Key: "Request/mode=local" + of, Unit: "µs", Scale: micro},
				report.Goal{Title: title + "shared mode", Key: "Request/mode=shared" + of, Unit: "µs", Scale: micro},
				report.Goal{Title: title + "the API server", Key: "Request/mode=direct" + of, Unit: "µs", Scale: micro},
				report.Goal{Title: title + "shared more than local", Key: "Access" + of, Unit: "µs", Scale: micro, Max: 20})
		}
	}
	users := s.users / namespaces * namespaces
	group := users / namespaces
	for _, n := range []int{group, group / 10} {
		all = append(all, report.Goal{
			Title: fmt.Sprintf("the API server's CPU for %d watches of %d users at the gateway, of that for %d at itself", group, n, group),
			Key:   fmt.Sprintf("Share/users=%d of-direct", n), Max: 1.0 / 20,
		})
	}
	few := users / perFew
	for _, n := range []int{users, few} {
		name := heldName(users, n)
		if n == few {
			name = heldName(few*perFew, few)
		}
		title := fmt.Sprintf("%d watches of %d users: ", users, n)
		all = append(all,
			report.Goal{Title: title + "until they are open", Key: "Open" + name + " s", Unit: "s"},
			report.Goal{Title: title + "TokenReviews per minute and user", Key: "Held" + name + " tokenreviews/min/user", Max: maxPerMinute},
			report.Goal{Title: title + "SubjectAccessReviews per minute and user", Key: "Held" + name + " accessreviews/min/user", Max: maxPerMinute},
			report.Goal{Title: title + "watches cut", Key: "Held" + name + " cut", Zero: true},
			report.Goal{Title: title + "watches without their event", Key: "Held" + name + " missed", Zero: true},
			report.Goal{Title: title + "memory of the gateway (RSS)", Key: "Held" + name + " rss-B", Unit: "MB", Scale: mega},
			report.Goal{Title: title + "per watch (RSS)", Key: "Held" + name + " rss-B/watch", Unit: "KB", Scale: kilo},
			report.Goal{Title: title + "per watch (live heap and stacks)", Key: "Held" + name + " live-B/watch", Unit: "KB", Scale: kilo},
			report.Goal{Title: title + "CPU of the gateway, of one core", Key: "Held" + name + " cpu-%", Unit: "%"},
			report.Goal{Title: title + "CPU of the API server, of one core", Key: "Held" + name + " upstream-cpu-%", Unit: "%"})
	}
	for _, unit := range []string{"tokenreviews/min", "accessreviews/min"} {
		all = append(all, report.Goal{
			Title: fmt.Sprintf("%s of %d users, of those of %d", unit, few, users),
			Key:   "Held" + heldName(few*perFew, few) + " " + unit, Than: "Held" + heldName(users, users) + " " + unit, Max: maxPerMinute / perFew,
		})
	}
	for _, of := range []struct{ name, says string }{
		{"user", "a RoleBinding of one user"},
		{"group", fmt.Sprintf("the ClusterRoleBinding of a group of %d", group)},
	} {
		title := of.says + " deleted, of " + fmt.Sprint(users) + " users: "
		all = append(all,
			report.Goal{Title: title + "end of the watch after the API server's denial, p50", Key: "Revoked/of=" + of.name + " p50-s", Unit: "s"},
			report.Goal{Title: title + "p99", Key: "Revoked/of=" + of.name + " p99-s", Unit: "s", Max: 10},
			report.Goal{Title: title + "SubjectAccessReviews per user concerned", Key: "Revoked/of=" + of.name + " accessreviews/user-concerned"},
			report.Goal{Title: title + "per minute and other user", Key: "Revoked/of=" + of.name + " accessreviews/min/other", Max: maxPerMinute})
	}
	for _, of := range []struct {
		resource, says string
		p50, p99       float64
	}{{"namespaces", "the Namespaces", 15, 150}, {"secrets", fmt.Sprint(idleObjects, " Secrets"), 0, 0}} {
		title, key := "end bookmark of "+of.says+", idle: ", "Start/of="+of.resource+"/from="
		all = append(all,
			report.Goal{Title: title + "from the API server, p50", Key: key + "direct p50-ms", Unit: "ms"},
			report.Goal{Title: title + "from the API server, p99", Key: key + "direct p99-ms", Unit: "ms"},
			report.Goal{Title: title + "from the gateway in local mode, p50", Key: key + "gateway p50-ms", Unit: "ms", Max: of.p50},
			report.Goal{Title: title + "from the gateway in local mode, p99", Key: key + "gateway p99-ms", Unit: "ms", Max: of.p99})
	}
	const beside = "beside a hostile user: "
	for _, with := range []string{"no", "yes"} {
		title := beside
		if with == "no" {
			title = "without one: "
		}
		of := "Hostile/with=" + with + " "
		all = append(all,
			report.Goal{Title: title + "a list of the others, p50", Key: of + "list-p50-s", Unit: "s"},
			report.Goal{Title: title + "p99", Key: of + "list-p99-s", Unit: "s", Max: 0.25},
			report.Goal{Title: title + "an event later than the update, at most", Key: of + "event-max-s", Unit: "s", Max: 1},
			report.Goal{Title: title + "answers other than 200", Key: of + "refused", Zero: true},
			report.Goal{Title: title + "watches cut", Key: of + "cut", Zero: true},
			report.Goal{Title: title + "CPU of the API server, of one core", Key: of + "upstream-cpu-%", Unit: "%"},
			report.Goal{Title: title + "CPU of the gateway, of one core", Key: of + "gateway-cpu-%", Unit: "%"})
	}
	return append(all,
		report.Goal{Title: beside + "p99 of a list, of that without one", Key: "HostileShare p99-of-calm", Max: 2},
		report.Goal{Title: beside + "CPU of the API server, of that without one", Key: "HostileShare upstream-cpu-of-calm", Max: 1.3},
		report.Goal{Title: beside + "memory of the gateway (RSS), at most", Key: "HostileShare rss-B", Unit: "MB", Scale: mega, Max: 1 << 30 * mega})
}
