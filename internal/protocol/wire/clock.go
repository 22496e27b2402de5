// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A clock returns a cell that depends on the time, such as an age, as of now. It
// is given the object and the cell that the API server printed when the object
// was observed. Both cells are JSON.
type clock func(o *scan.Object, observed string, now time.Time) (string, error)

// unknownTime is the cell of an unset time: "<unknown>", escaped.
const unknownTime = `"\u003cunknown\u003e"`

var created = since("metadata.creationTimestamp")

// clocks has the columns of the API server's own types whose cells depend on the
// time, as of Kubernetes 1.37; the column Age, which all types have, is not listed.
// nil is for a column whose cells only look like ages.
var clocks = map[string]map[string]clock{
	"cronjobs.batch":                   {"Last Schedule": since("status.lastScheduleTime")},
	"devicetaintrules.resource.k8s.io": {"TimeAdded": since("spec.taint.timeAdded")},
	"events": {
		"Last Seen":  since("series.lastObservedTime", "lastTimestamp", "firstTimestamp", "eventTime"),
		"First Seen": since("firstTimestamp", "eventTime"),
	},
	"events.events.k8s.io": {
		"Last Seen":  since("series.lastObservedTime", "deprecatedLastTimestamp", "deprecatedFirstTimestamp", "eventTime"),
		"First Seen": since("deprecatedFirstTimestamp", "eventTime"),
	},
	"jobs.batch": {"Duration": jobDuration},
	"resourcepoolstatusrequests.resource.k8s.io": {"Completed": unknownDate("Completed")},
	// The requested lifetime of a certificate.
	"certificatesigningrequests.certificates.k8s.io": {"RequestedDuration": nil},
}

// clockOf returns the clock of a column, nil if its cells do not depend on the
// time.
func (e *Encoder) clockOf(c column) clock {
	res := e.Resource.GroupResource()
	path, custom := strings.CutPrefix(c.Description, customColumn)
	simple, isSimple := kube.SimplePath(path)
	own, isOwn := clocks[res][c.Name]
	switch {
	case custom && c.Type != "date":
		return nil
	case custom && isSimple:
		return since(simple)
	case c.Type == "date" && c.Description == (metav1.ObjectMeta{}).SwaggerDoc()["creationTimestamp"]:
		return created // of a custom resource that defines no columns
	case c.Type == "date":
		return e.customClock(c, unknownDate(c.Name))
	case isOwn:
		return own
	case res == "pods" && c.Name == "Restarts":
		return e.restarts
	case c.Name == "Name":
		return nil
	case c.Name == "Age":
		return e.customClock(c, ageOf(notAClock(c.Name)))
	}
	return e.customClock(c, notAClock(c.Name))
}

// ageOf returns the age of the API server's own types. A custom resource may
// define a column of that name that shows something else.
func ageOf(custom clock) clock {
	return func(o *scan.Object, observed string, now time.Time) (string, error) {
		if o.Typed() {
			return created(o, observed, now)
		}
		return custom(o, observed, now)
	}
}

// customColumn begins the API server's description of a custom resource's column
// that has none in the definition.
const customColumn = "Custom resource definition column (in JSONPath format): "

// customClock follows the definition of a custom resource if it is known. It looks
// the definition up for each cell, since that may change while the
// columnDefinitions stay equal.
func (e *Encoder) customClock(c column, otherwise clock) clock {
	if e.DatePath == nil {
		return otherwise
	}
	return func(o *scan.Object, observed string, now time.Time) (string, error) {
		switch path, ok := e.DatePath(c.Name); {
		case !ok || (path != nil) != (c.Type == "date"):
			return otherwise(o, observed, now)
		case path == nil:
			return observed, nil
		default:
			return sincePaths(path)(o, observed, now)
		}
	}
}

// unknownDate refuses a column of dates if it is not known which field they are in.
func unknownDate(name string) clock {
	return func(*scan.Object, string, time.Time) (string, error) {
		return "", fmt.Errorf("%w: unknown which date the column %q shows", ErrForm, name)
	}
}

// since returns the time since the value of the first path that has one. An object
// without any keeps the printed cell, which does not depend on the time.
func since(paths ...string) clock {
	var split [][]string
	for _, p := range paths {
		split = append(split, strings.Split(p, "."))
	}
	return sincePaths(split...)
}

func sincePaths(paths ...[]string) clock {
	return func(o *scan.Object, observed string, now time.Time) (string, error) {
		if observed == unknownTime || isTimestamp(observed) {
			return observed, nil
		}
		for _, p := range paths {
			text := scan.Lookup(o.JSON, p...)
			if text == "" {
				continue
			}
			t, err := time.Parse(time.RFC3339, text)
			if err != nil {
				break // the API server has printed "<invalid>"
			}
			return quote(duration.HumanDuration(now.Sub(t))), nil
		}
		return observed, nil
	}
}

// isTimestamp reports whether a cell is a time, not the time since. The API server
// prints the creation so for types that have no columns of their own.
func isTimestamp(cell string) bool {
	return len(cell) > 20 && cell[5] == '-' && cell[11] == 'T'
}

// notAClock keeps the cells of a column that is not known to depend on the time. It
// refuses those that look like an age: the API server may be newer than the table
// of clocks.
func notAClock(name string) clock {
	return func(o *scan.Object, observed string, _ time.Time) (string, error) {
		if looksLikeAge(observed) {
			return "", fmt.Errorf("%w: the column %q of %s may depend on the time", ErrForm, name, o.Kind)
		}
		return observed, nil
	}
}

// looksLikeAge reports whether a cell is like "5m", "3d4h", "in 5m", "5m ago" or "2 (5m ago)".
func looksLikeAge(cell string) bool {
	text, isText := strings.CutPrefix(strings.TrimSuffix(cell, `"`), `"`)
	if !isText {
		return false
	}
	if before, ok := strings.CutSuffix(strings.TrimSuffix(text, ")"), " ago"); ok {
		text = before[strings.LastIndexAny(before, " (")+1:]
	}
	return IsAge(strings.TrimPrefix(text, "in "))
}

// IsAge reports whether a text is an age as the API server prints it, such as 5m or 3d4h.
func IsAge(text string) bool {
	units, digits := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			digits++
		case digits > 0 && strings.IndexByte("smhdy", c) >= 0:
			digits = 0
			units++
		default:
			return false
		}
	}
	return digits == 0 && units > 0 && units <= 2
}

// jobDuration returns how long a Job has been running, or was.
func jobDuration(o *scan.Object, observed string, now time.Time) (string, error) {
	if scan.Lookup(o.JSON, "status", "completionTime") != "" {
		return observed, nil
	}
	return jobRunning(o, observed, now)
}

var jobRunning = since("status.startTime")

// restarts returns the number of a Pod's restarts and the time since the last.
func (e *Encoder) restarts(o *scan.Object, observed string, now time.Time) (string, error) {
	count, _, ok := strings.Cut(observed, " (")
	if !ok || !strings.HasSuffix(observed, ` ago)"`) {
		return observed, nil
	}
	text, err := e.Cache.get(o, asLastRestart, lastRestart)
	if err != nil {
		return "", err
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrForm, err)
	}
	return count + " (" + duration.HumanDuration(now.Sub(t)) + ` ago)"`, nil
}

// lastRestart returns the time of a Pod's last restart, by the API server's rules:
// of its containers and restartable init containers or, while the Pod
// initializes, of its init containers up to the one that it waits for.
func lastRestart(o *scan.Object) (string, error) {
	var pod corev1.Pod
	if err := json.Unmarshal([]byte(o.JSON), &pod); err != nil {
		return "", fmt.Errorf("%w: %w", ErrForm, err)
	}
	restartable := map[string]bool{}
	for _, c := range pod.Spec.InitContainers {
		restartable[c.Name] = c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	}
	var last, lastOfRestartable metav1.Time
	later := func(t *metav1.Time, s corev1.ContainerStatus) {
		if end := s.LastTerminationState.Terminated; end != nil && t.Before(&end.FinishedAt) {
			*t = end.FinishedAt
		}
	}
	initializing := false
	for _, s := range pod.Status.InitContainerStatuses {
		later(&last, s)
		if restartable[s.Name] {
			later(&lastOfRestartable, s)
		}
		done := s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		started := restartable[s.Name] && s.Started != nil && *s.Started
		if !done && !started {
			initializing = true
			break
		}
	}
	if !initializing || initialized(&pod) {
		last = lastOfRestartable
		for _, s := range pod.Status.ContainerStatuses {
			later(&last, s)
		}
	}
	return last.UTC().Format(time.RFC3339), nil
}

func initialized(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodInitialized {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
