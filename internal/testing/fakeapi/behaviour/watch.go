// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"net/http"
	"strconv"
)

func testWatch(s *session) {
	s.create("a", "1")
	start := s.get(s.path("")).Metadata.ResourceVersion
	w := s.watch("resourceVersion", start)
	changed := s.update("a", "2")
	b := s.create("b", "1")
	s.delete("a")
	w.want("MODIFIED a=2", "ADDED b=1")
	deleted, _ := w.event()
	if o := deleted.Object; deleted.Type != "DELETED" || o.Data["value"] != "2" || o.rv() <= b.rv() {
		s.Errorf("%+v", deleted)
	}
	// A resumed watch has the events after its RV.
	again := s.watch("resourceVersion", changed.Metadata.ResourceVersion)
	again.want("ADDED b=1", "DELETED a=2")
	// Neither watch has events that it does not select.
	s.update("b", "2")
	w.want("MODIFIED b=2")
	again.want("MODIFIED b=2")
	// A timeout ends it cleanly.
	s.watch("resourceVersion", s.get(s.path("")).Metadata.ResourceVersion, "timeoutSeconds", "1").want("end")
}

func testSelector(s *session) {
	s.create("a", "1", "color", "red")
	w := s.watch("resourceVersion", s.get(s.path("")).Metadata.ResourceVersion, "labelSelector", "color=red,test="+s.label())
	s.update("a", "2", "color", "blue")
	s.update("a", "3", "color", "red")
	s.create("b", "1", "color", "blue")
	s.update("a", "4", "color", "red")
	s.update("a", "5", "color", "blue")
	s.delete("a")
	w.want("DELETED a=1", "ADDED a=3", "MODIFIED a=4", "DELETED a=4")
	s.update("b", "2", "color", "red")
	w.want("ADDED b=2")
}

func testInitialEvents(s *session) {
	s.create("b", "1")
	s.create("a", "1")
	now := s.get(s.path("")).Metadata.ResourceVersion
	legacy := s.watch("resourceVersion", "")
	streaming := s.watch("sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan", "allowWatchBookmarks", "true", "resourceVersion", now)
	none := s.watch("sendInitialEvents", "false", "resourceVersionMatch", "NotOlderThan", "resourceVersion", now)
	legacy.want("ADDED a=1", "ADDED b=1")
	streaming.want("ADDED a=1", "ADDED b=1")
	mark, _ := streaming.event()
	rv, _ := strconv.ParseUint(now, 10, 64)
	if mark.Type != "BOOKMARK" || mark.Object.Metadata.Annotations["k8s.io/initial-events-end"] != "true" || mark.Object.rv() < rv || mark.Object.Kind != "ConfigMap" {
		s.Errorf("%+v, want a bookmark at %s", mark, now)
	}
	s.update("a", "2")
	for _, w := range []*stream{legacy, streaming, none} {
		w.want("MODIFIED a=2")
	}
}

func testBookmarks(s *session) {
	start := s.get(s.path("")).Metadata.ResourceVersion
	with := s.watch("resourceVersion", start, "allowWatchBookmarks", "true", "timeoutSeconds", "4")
	without := s.watch("resourceVersion", start, "timeoutSeconds", "4")
	created := s.create("a", "1")
	for _, w := range []*stream{with, without} {
		w.want("ADDED a=1")
	}
	// A bookmark comes shortly before the end. A real API server checks for due
	// bookmarks once a second, and may send a second one.
	bookmarks := 0
	for mark, ok := with.event(); ok; mark, ok = with.event() {
		bookmarks++
		if mark.Type != "BOOKMARK" || mark.Object.rv() < created.rv() || mark.Object.Metadata.Name != "" {
			s.Errorf("%+v", mark)
		}
	}
	if bookmarks < 1 || bookmarks > 2 {
		s.Errorf("%d bookmarks", bookmarks)
	}
	without.want("end")
	if a := s.get(s.path("", "watch", "true", "resourceVersion", start, "timeoutSeconds", "x")); a.Code != http.StatusBadRequest {
		s.Errorf("%d %s", a.Code, a.Body)
	}
}
