// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
)

// An anchor finds the time that a cell with an age is counted from, so that the table can
// go on counting. It is given the cell as the API server printed it, and returns it
// unchanged if it finds none.
type anchor func(o *scan.Object, printed table.Cell, now time.Time) table.Cell

// customColumn begins the API server's description of a custom resource's column that has
// none in the definition.
const customColumn = "Custom resource definition column (in JSONPath format): "

// anchors has the columns of the API server's own types that show ages, besides Age. Any
// other cell that looks like an age remains as it was printed.
var anchors = map[string]map[string]anchor{
	"pods":           {"Restarts": lastRestart},
	"cronjobs.batch": {"Last Schedule": since("status.lastScheduleTime")},
	"jobs.batch":     {"Duration": jobDuration},
	"events": {
		"Last Seen":  since("series.lastObservedTime", "lastTimestamp", "firstTimestamp", "eventTime"),
		"First Seen": since("firstTimestamp", "eventTime"),
	},
	"events.events.k8s.io": {
		"Last Seen":  since("series.lastObservedTime", "deprecatedLastTimestamp", "deprecatedFirstTimestamp", "eventTime"),
		"First Seen": since("deprecatedFirstTimestamp", "eventTime"),
	},
}

// anchorOf returns the anchor of a column, nil if its cells do not depend on the time.
func anchorOf(r kube.Resource, d metav1.TableColumnDefinition) anchor {
	path, custom := strings.CutPrefix(d.Description, customColumn)
	simple, isSimple := kube.SimplePath(path)
	switch own := anchors[r.GroupResource()][d.Name]; {
	case own != nil:
		return own
	case custom && d.Type == "date" && isSimple:
		return since(simple)
	case d.Type == "date", d.Name == "Age" && !custom:
		// Nearly always that of the creation; a column with its own description does not
		// say which date it shows.
		return verified(created)
	}
	return nil
}

var created = since("metadata.creationTimestamp")

// since returns the anchor at the first of some paths that has a time.
func since(paths ...string) anchor {
	var split [][]string
	for _, p := range paths {
		split = append(split, strings.Split(p, "."))
	}
	return func(o *scan.Object, printed table.Cell, _ time.Time) table.Cell {
		if !wire.IsAge(printed.Text) && printed.Text != "<unknown>" {
			return printed // an unset time, or the time itself
		}
		for _, p := range split {
			if text := scan.Lookup(o.JSON, p...); text != "" {
				if t, err := time.Parse(time.RFC3339, text); err == nil && t.Unix() > 0 {
					return table.Cell{Since: t.Unix()}
				}
				return printed
			}
		}
		return printed
	}
}

// tolerance is how far clocks may be apart, and how old a Table may be when it is read.
const tolerance = 5 * time.Second

// verified uses an anchor only if it explains what the API server has printed.
func verified(a anchor) anchor {
	return func(o *scan.Object, printed table.Cell, now time.Time) table.Cell {
		c := a(o, printed, now)
		if c.Since == 0 || o.Typed() && c.Text == "" || explains(c.Since, printed.Text, now) {
			return c
		}
		return printed
	}
}

// explains reports whether an age that was printed shortly before now may be counted from
// a time.
func explains(since int64, age string, now time.Time) bool {
	for d := -tolerance; d <= tolerance; d += time.Second {
		if duration.HumanDuration(now.Add(d).Sub(time.Unix(since, 0))) == age {
			return true
		}
	}
	return false
}

// jobDuration counts while a Job runs.
func jobDuration(o *scan.Object, printed table.Cell, now time.Time) table.Cell {
	if scan.Lookup(o.JSON, "status", "completionTime") != "" {
		return printed
	}
	return verified(since("status.startTime"))(o, printed, now)
}

// lastRestart splits "3 (5m ago)". The API server's rule for which containers count depends
// on whether the Pod initializes; the newest time that explains the cell is right.
func lastRestart(o *scan.Object, printed table.Cell, now time.Time) table.Cell {
	count, rest, ok := strings.Cut(printed.Text, " (")
	age, ok2 := strings.CutSuffix(rest, " ago)")
	if !ok || !ok2 {
		return printed
	}
	var pod struct {
		Status struct {
			InitContainerStatuses, ContainerStatuses []struct {
				LastState struct {
					Terminated struct{ FinishedAt time.Time }
				}
			}
		}
	}
	if json.Unmarshal([]byte(o.JSON), &pod) != nil {
		return printed
	}
	var best int64
	for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if at := s.LastState.Terminated.FinishedAt.Unix(); at > best && explains(at, age, now) {
			best = at
		}
	}
	if best == 0 {
		return printed
	}
	return table.Cell{Text: count, Since: best}
}
