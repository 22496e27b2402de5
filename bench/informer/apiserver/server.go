// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiserver is a synthetic API server with many Pods, for measuring
// what a client costs. It serves LIST and WATCH of /api/v1/pods, in JSON,
// protobuf, as metadata only in protobuf and, if wanted, as Tables; by the API
// server's rules for limit and continue, resourceVersion, bookmarks and
// streaming lists. What it sends was encoded when it started: an answer costs
// it a copy, in which the resourceVersion is written over, and the system
// calls.
//
// Nothing changes by itself. Further requests make changes:
//
//	POST /bench/events?n=100000   as many Pods are modified, at once
//	                 &rate=1000   or this many in a second; it answers behind the last
//	POST /bench/expire            every watch ends with 410 and nothing is changed
//	GET  /bench/lists             how many lists there were, but for those with limit=1
//
// The answer to the first two is a Mark, by which a client tells that it is
// through.
// Selectors, single namespaces and single Pods are not served. For a gateway,
// discovery of the one resource is there and the namespace that tells which
// cluster it is, and access is granted to all.
package apiserver

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// firstRV has room for nine thousand million changes of equal length.
const firstRV = 1_000_000_000

// A Mark is the last change that comes of a request: once a client has it, it
// has everything.
type Mark struct {
	Namespace, Name, ResourceVersion string
}

// Options of a Server.
type Options struct {
	Pods      int           // how many there are
	Bookmarks time.Duration // between bookmarks of a watch; 0 means a minute
	Tables    bool          // are served as well, with includeObject=Object
	// Churn has a modified Pod differ in more than its resourceVersion, in JSON
	// and Tables: in times of its status and of managedFields, and now and then
	// in how often a container was started.
	Churn bool
	// Nodes serves as many Nodes too, which never change, and has the Pods run on
	// them; 0 is none, and Pods that run on 1000 that nobody sees. For gateways
	// with many Pods, it serves Tables too, and no protobuf; and has each change of Churn be one of how often a container was started.
	Nodes int
}

// Server is an http.Handler.
type Server struct {
	pods      []metav1.ObjectMeta // namespaces and names
	nodes     *Server             // nil for none
	encodings []encoding
	bookmarks time.Duration

	mu        sync.Mutex
	changed   chan struct{} // closed when any of these changes
	rvs       []int64       // of each Pod
	compacted int64         // changes up to this are forgotten
	log       []int         // the Pod changed at compacted+1 and on; only appended to
	expiries  int           // watches opened before the last one end
	marker    int           // the Pod that the next watch sees changed, as the Mark of an expiry; or -1
	random    *rand.Rand
	lists     int // asked for, with another limit than 1
}

// An encoding is all Pods in one of the formats.
type encoding struct {
	format
	protobuf, metadata, table bool
	kind                      string // "" for Pods
	objects                   []object
	size                      int // of all of them as items
}

// New encodes the Pods, which takes some 0.1 ms for each.
func New(o Options) (*Server, error) {
	if o.Bookmarks == 0 {
		o.Bookmarks = time.Minute
	}
	s := &Server{
		bookmarks: o.Bookmarks,
		changed:   make(chan struct{}),
		compacted: firstRV + int64(o.Pods),
		marker:    -1,
		random:    rand.New(rand.NewPCG(1, 1)),
		encodings: []encoding{{format: jsonFormat{"v1", "Pod"}}, inMetadata},
	}
	if o.Nodes == 0 {
		s.encodings = append(s.encodings, encoding{format: protoFormat{"v1", "Pod", runtime.ContentTypeProtobuf + ";stream=watch"}, protobuf: true})
	}
	if o.Tables || o.Nodes > 0 {
		s.encodings = append(s.encodings, encoding{format: tableFormat{jsonFormat{"v1", "Pod"}}, table: true})
	}
	if o.Nodes > 0 {
		var err error
		if s.nodes, err = newNodes(o); err != nil {
			return nil, err
		}
	}
	for i := range o.Pods {
		p := Pod(i)
		if o.Nodes > 0 {
			p.Spec.NodeName = nodeName(i % o.Nodes)
		}
		for j := range s.encodings {
			e := &s.encodings[j]
			encoded, err := e.newObject(e.view(p), p.ResourceVersion)
			if err != nil {
				return nil, err
			}
			if o.Churn && !e.protobuf {
				encoded.churn = findChurn(encoded.body)
				encoded.churn.restarting = o.Nodes > 0
			}
			e.objects = append(e.objects, encoded)
			e.size += e.itemSize(encoded)
		}
		s.pods = append(s.pods, metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name})
		s.rvs = append(s.rvs, firstRV+int64(i))
	}
	return s, nil
}

// inMetadata is that of metadata only.
var inMetadata = encoding{
	format: protoFormat{"meta.k8s.io/v1", "PartialObjectMetadata",
		runtime.ContentTypeProtobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1;stream=watch"},
	protobuf: true, metadata: true,
}

// view is a Pod as the encoding has it.
func (e *encoding) view(p *corev1.Pod) runtime.Object {
	if !e.metadata {
		return p
	}
	return metadataOf(&p.ObjectMeta)
}

func metadataOf(of *metav1.ObjectMeta) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: *of}
	m.APIVersion, m.Kind = "meta.k8s.io/v1", "PartialObjectMetadata"
	return m
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/bench/events":
		n, err := strconv.Atoi(r.URL.Query().Get("n"))
		if err != nil || n < 1 {
			http.Error(w, "n: how many events?", http.StatusBadRequest)
			return
		}
		if rate := r.URL.Query().Get("rate"); rate != "" {
			s.servePaced(w, r, n, rate)
			return
		}
		writeJSON(w, http.StatusOK, s.change(n))
	case r.Method == http.MethodPost && r.URL.Path == "/bench/expire":
		writeJSON(w, http.StatusOK, s.expire())
	case r.Method == http.MethodGet && r.URL.Path == "/api/v1/pods":
		s.servePods(w, r)
	case r.Method == http.MethodGet && r.URL.Path == "/api/v1/nodes" && s.nodes != nil:
		s.nodes.servePods(w, r)
	case r.Method == http.MethodGet && r.URL.Path == "/bench/lists":
		s.mu.Lock()
		lists := s.lists
		s.mu.Unlock()
		writeJSON(w, http.StatusOK, lists)
	case r.Method == http.MethodGet && r.URL.Path == "/api":
		writeJSON(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}})
	case r.Method == http.MethodGet && r.URL.Path == "/apis":
		writeJSON(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}})
	case r.Method == http.MethodGet && r.URL.Path == "/api/v1/namespaces/kube-system":
		writeJSON(w, http.StatusOK, kubeSystem())
	case r.Method == http.MethodGet && r.URL.Path == "/api/v1":
		writeJSON(w, http.StatusOK, resources(s.nodes != nil))
	case r.Method == http.MethodPost && r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		serveReview(w, r)
	default:
		writeStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the synthetic API server has /api/v1/pods only, and nodes if they were asked for")
	}
}

func (s *Server) servePods(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("labelSelector") != "" || query.Get("fieldSelector") != "" {
		writeStatus(w, http.StatusNotImplemented, metav1.StatusReasonMethodNotAllowed, "the synthetic API server has no selectors")
		return
	}
	e := s.negotiate(r.Header.Get("Accept"), query.Get("includeObject") == "Object")
	if e == nil {
		writeStatus(w, http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "only application/json and application/vnd.kubernetes.protobuf")
		return
	}
	if watch := query.Get("watch"); watch == "1" || watch == "true" {
		s.serveWatch(w, r, e)
	} else {
		if query.Get("limit") != "1" {
			s.mu.Lock()
			s.lists++
			s.mu.Unlock()
		}
		s.serveList(w, r, e)
	}
}

// negotiate finds the first encoding accepted. A Table has to have the whole
// objects in it.
func (s *Server) negotiate(accept string, objects bool) *encoding {
	for entry := range strings.SplitSeq(accept, ",") {
		typ, params, _ := strings.Cut(strings.TrimSpace(entry), ";")
		metadata, table := strings.Contains(params, "as=PartialObjectMetadata"), strings.Contains(params, "as=Table")
		protobuf := typ == runtime.ContentTypeProtobuf
		if !protobuf && typ != runtime.ContentTypeJSON && typ != "*/*" && typ != "" {
			continue
		}
		for i := range s.encodings {
			if e := &s.encodings[i]; e.protobuf == protobuf && e.metadata == metadata && e.table == table && (objects || !table) {
				return e
			}
		}
	}
	return nil
}

// change modifies n Pods.
func (s *Server) change(n int) Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.changeLocked(s.random.IntN(len(s.pods)))
	}
	s.wakeLocked()
	return s.markLocked(s.log[len(s.log)-1], s.headLocked())
}

func (s *Server) changeLocked(pod int) {
	s.log = append(s.log, pod)
	s.rvs[pod] = s.headLocked()
}

func (s *Server) markLocked(pod int, rv int64) Mark {
	return Mark{s.pods[pod].Namespace, s.pods[pod].Name, strconv.FormatInt(rv, 10)}
}

// expire ends the watches. The revision goes up, as if another resource had
// changed, so that none of them can be resumed.
func (s *Server) expire() Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted, s.log = s.headLocked()+1, nil
	s.expiries++
	s.marker = s.random.IntN(len(s.pods))
	s.wakeLocked()
	return s.markLocked(s.marker, s.compacted+1)
}

// follow is called by a watch that has sent what there was before, with the
// number of expiries when it was opened.
func (s *Server) follow(expiries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marker >= 0 && s.expiries == expiries {
		s.changeLocked(s.marker)
		s.marker = -1
		s.wakeLocked()
	}
}

func (s *Server) wakeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) headLocked() int64 { return s.compacted + int64(len(s.log)) }

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(v)
}

func newStatus(code int, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
}

func writeStatus(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	writeJSON(w, code, newStatus(code, reason, message))
}

func tooLarge(rv, head int64) *metav1.Status {
	s := newStatus(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, fmt.Sprintf("Too large resource version: %d, current: %d", rv, head))
	s.Details = &metav1.StatusDetails{RetryAfterSeconds: 1, Causes: []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}}
	return s
}
