// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// maxMessage limits the bytes of a message.
const maxMessage = 300

// maxPause is the pause after which an Event that occurs again gets another entry.
const maxPause = 2 * time.Minute

// An event is an Event.
type event struct {
	change.Event
	itself   corev1.ObjectReference
	entry    *entry
	messages []string // of the Events that are folded into this one
	objects  []string
}

// about returns the object that the Event is about; the Event itself if it names none.
func (ev *event) about() corev1.ObjectReference {
	if ref := ev.About(); ref.Kind != "" {
		return ref
	}
	return ev.itself
}

func (ev *event) warns() bool { return ev.Type == "Warning" }

// readEvent adds the entries of an Event.
func (t *teller) readEvent(o *Object) {
	var last *entry
	before := 0 // how often it had occurred
	if o.Initial != nil {
		ev := &event{}
		_ = json.Unmarshal([]byte(o.Initial.JSON), ev)
		before = ev.Times()
	}
	for _, v := range o.Versions {
		if v.Object == nil || v.Type == kube.Deleted { // Events expire
			continue
		}
		ev := &event{}
		_ = json.Unmarshal([]byte(v.Object.JSON), ev)
		ev.itself = corev1.ObjectReference{Kind: "Event", Namespace: o.Key.Namespace(), Name: o.Key.Name()}
		n := max(ev.Times()-before, 1)
		before = ev.Times()
		if last != nil && v.Time.Sub(cmp.Or(last.Until, last.Time)) <= maxPause {
			last.Until, last.Count = v.Time.UTC(), max(last.Count, 1)+n
			last.event.messages = words.AppendOnce(last.event.messages, ev.Text())
			continue
		}
		e := t.entry(o, v, api.EventType, nil)
		ref := ev.about()
		e.Kind, e.Namespace, e.Name = ref.Kind, ref.Namespace, ref.Name
		if n > 1 {
			e.Count = n
		}
		if who := ev.Reporter(); who != "" {
			e.By = []string{who}
		}
		ev.entry, e.event = e, ev
		ev.messages, ev.objects = []string{ev.Text()}, []string{ref.Name}
		e.What = ev.what()
		t.events = append(t.events, e)
		last = e
	}
}

// link finds the things that Events are about: by UID, and by name if the Event has none.
func (t *teller) link() {
	byName := map[name]*thing{}
	for _, th := range t.things {
		byName[name{th.kind, th.key.Namespace(), th.key.Name(), ""}] = th // the last one of the name
	}
	for _, e := range t.events {
		ref := e.event.about()
		e.thing = t.byUID[string(ref.UID)]
		if e.thing == nil { // the kubelet's Events about Nodes have the name as UID
			e.thing = byName[name{ref.Kind, ref.Namespace, ref.Name, ""}]
		}
	}
	for _, e := range t.entries {
		switch {
		case e.thing != nil:
			e.about = t.workload(e.thing)
		case e.event != nil:
			e.about = name{e.Kind, e.Namespace, e.Name, string(e.event.about().UID)}
		}
	}
}

// class returns a text that Events have in common which say the same about objects of one
// workload: names of objects, and words with digits, may differ.
func (ev *event) class(t *teller) string {
	return strings.Join([]string{ev.Type, ev.Reason, ev.about().Kind, ev.entry.about.String(), words.Masked(ev.Text(), func(w string) bool { return words.HasDigit(w) || words.IsName(w, ev.about().Name) })}, "\x00")
}

// what describes the Event.
func (ev *event) what() []string {
	text := change.Because(ev.Reason, ev.messages[0])
	if ev.warns() {
		text = "Warning " + text
	}
	out := []string{words.Clip(text, maxMessage)}
	if n := len(ev.messages) - 1; n > 0 {
		more := fmt.Sprintf("and %s like it", words.Count(n, "message"))
		if len(ev.objects) > 1 {
			more += fmt.Sprintf(" about %s", words.Count(len(ev.objects), ev.about().Kind))
		}
		out = append(out, more)
	}
	return out
}

// eventsAbout returns the Events about a thing that began in a time, the earliest first: those of
// some reasons, or all.
func (t *teller) eventsAbout(th *thing, from, to time.Time, reasons ...string) (all []*event) {
	for _, e := range t.events {
		if (reasons == nil || slices.Contains(reasons, e.event.Reason)) && e.thing == th && !e.Time.After(to) && !cmp.Or(e.Until, e.Time).Before(from) {
			all = append(all, e.event)
		}
	}
	return all
}

// cause returns what an Event says.
func (ev *event) cause() api.Cause {
	ref := ev.about()
	return api.Cause{
		Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Field: "Event", Text: change.Because(ev.Reason, ev.Text()),
		Path: ev.entry.Path, ResourceVersion: ev.entry.ResourceVersion,
	}
}
