// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A form is how a request reads.
type form string

const (
	now        form = "now"
	past       form = "past"
	projection form = "projection"
	history    form = "history"
	multiwatch form = "multiwatch"
	whereTo    form = "access" // in which namespaces the caller may do it
)

// A request is one that is sent to both servers.
type request struct {
	method, path, query, accept, contentType string
	body                                     []byte
	form                                     form
	stream                                   bool // a WATCH
	// read is set for a GET, LIST or WATCH of whole objects in the usual spelling, which
	// the gateway can answer itself.
	read bool
	// comparable is set if both servers' answers have the same objects.
	comparable bool

	// What it asks, in the words of a review.
	verb, group, resource, sub, namespace, name string
	// watches are those of a multiwatch, of which each asks something else.
	watches []*request
	// namespaces are those of which an answer to whereTo is judged.
	namespaces []string
}

func (q *request) String() string {
	text := q.method + " " + q.path
	if q.query != "" {
		text += "?" + q.query
	}
	if q.accept != "" {
		text += " Accept: " + q.accept
	}
	if q.body != nil {
		text += fmt.Sprintf(" %s: %s", q.contentType, q.body)
	}
	return text
}

const (
	jsonType  = "application/json"
	protoType = "application/vnd.kubernetes.protobuf"
	tableType = "application/json;as=Table;g=meta.k8s.io;v=v1"
)

// accepts are the encodings of reads. The first ones come more often.
var accepts = []string{
	jsonType, jsonType, "", protoType, tableType, tableType + "," + jsonType, protoType + "," + jsonType,
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
	"application/yaml", "application/cbor", "*/*", protoType + ";as=Table;g=meta.k8s.io;v=v1", "text/html",
}

// request draws a request: from shared what it is about, and from r the rest, so that
// requests with equal generators shared differ in a namespace, a name or less, as is
// dangerous for a cache of decisions. extensions are what the API server does not have.
func (w *world) request(shared, r *rand.Rand, extensions bool) *request {
	if chance(shared, 5) {
		return w.pathRequest(r)
	}
	of := oneOf(shared, resources...)
	q := &request{form: now, group: of.group, resource: of.plural}
	if !of.cluster {
		q.namespace = oneOf(r, w.namespaces...)
	}
	what := shared.IntN(100)
	if chance(r, 15) {
		what = r.IntN(100)
	}
	switch {
	case what < 28:
		w.list(r, q, of, "list")
	case what < 56:
		w.list(r, q, of, "watch")
	case what < 72:
		q.verb = "get"
		w.named(r, q, of)
		if chance(r, 50) {
			q.query = "resourceVersion=0"
		}
	case what < 76: // HEAD of an object or a collection
		if chance(r, 50) {
			w.list(r, q, of, "list")
		} else {
			q.verb = "get"
			w.named(r, q, of)
		}
		q.method, q.stream, q.read, q.comparable = http.MethodHead, false, false, false
		q.accept = oneOf(r, accepts...)
		return q
	default:
		w.write(r, q, of)
		return q
	}
	q.method = http.MethodGet
	q.accept = oneOf(r, accepts...)
	q.read = !of.unwatched
	q.comparable = !of.volatile && !strings.HasPrefix(q.accept, "text/")
	if extensions && of.recorded && chance(r, 30) {
		w.extend(r, q, of)
		return q
	}
	w.respell(r, q)
	return q
}

// extend makes a read one of an extension.
func (w *world) extend(r *rand.Rand, q *request, of resource) {
	q.accept = oneOf(r, jsonType, "")
	switch q.verb {
	case "get":
		q.form = oneOf(r, past, past, history, whereTo)
	case "list":
		q.form = oneOf(r, past, past, projection, projection, history, history, whereTo)
	default:
		q.form = oneOf(r, past, past, projection, projection, multiwatch, multiwatch, whereTo)
	}
	switch q.form {
	case past:
		q.path = "/at/" + oneOf(r, "1s", "2s", "now") + q.path
		if q.verb != "watch" {
			q.accept = oneOf(r, jsonType, tableType)
		}
	case projection:
		q.query = strings.TrimPrefix(q.query+"&fields=metadata.name", "&")
	case history:
		w.historyOf(r, q, of)
	case multiwatch:
		w.multiwatch(r, q)
	case whereTo:
		q.stream, q.namespace, q.name = false, "", ""
		q.path, q.query = "/watchkeeper/v1/access", "resource="+strings.TrimSuffix(of.plural+"."+of.group, ".")+"&verb="+q.verb
		if !of.cluster {
			q.namespaces = w.namespaces
		}
	}
}

const historyPath = "/watchkeeper/v1/history"

// historyOf makes a GET or LIST one of the history API.
func (w *world) historyOf(r *rand.Rand, q *request, of resource) {
	collection := q.name == "" || q.verb == "list"
	q.name, q.query = "", "" // a LIST of the history has no name
	switch {
	case !collection:
		q.name = q.path[strings.LastIndex(q.path, "/")+1:]
		q.path = historyPath + "/versions" + q.path
	case chance(r, 50):
		q.path, q.query = historyPath+"/diff"+of.path(q.namespace), "from=2s&to=1s"
	default:
		q.path, q.query = historyPath+"/changes", "from=2s&resource="+strings.TrimSuffix(of.plural+"."+of.group, ".")+"&namespace="+q.namespace
	}
}

// multiwatch makes a WATCH one of several on one response, in namespaces and of resources
// that differ. They end soon, since the codes are in the events.
func (w *world) multiwatch(r *rand.Rand, q *request) {
	q.stream, q.path, q.query = false, "/watchkeeper/v1/multiwatch", ""
	query := url.Values{}
	for range 1 + r.IntN(3) {
		of := oneOf(r, resources...)
		if !of.recorded {
			continue
		}
		watch := &request{group: of.group, resource: of.plural}
		if !of.cluster {
			watch.namespace = oneOf(r, w.namespaces...)
		}
		w.list(r, watch, of, "watch")
		q.watches = append(q.watches, watch)
		query.Add("watch", watch.path+"?"+strings.Replace(watch.query, "timeoutSeconds=5", "timeoutSeconds=1", 1))
	}
	if q.watches == nil {
		watch := &request{verb: "watch", resource: "pods"}
		q.watches = []*request{watch}
		query.Add("watch", "/api/v1/pods?watch=1&timeoutSeconds=1")
	}
	q.query = query.Encode()
}

// list makes the request a LIST or WATCH, in all namespaces or one.
func (w *world) list(r *rand.Rand, q *request, of resource, verb string) {
	q.verb = verb
	if chance(r, 25) {
		q.namespace = ""
	}
	var query []string
	add := func(name, value string) { query = append(query, name+"="+url.QueryEscape(value)) }
	q.path = of.path(q.namespace)
	if verb == "watch" {
		q.stream = true
		add("watch", oneOf(r, "1", "true"))
		add("timeoutSeconds", "5")
	}
	switch n := r.IntN(100); {
	case n < 30:
		q.name = w.objectName(r, of)
		add("fieldSelector", "metadata.name="+q.name)
	case n < 35:
		add("fieldSelector", "metadata.name!="+w.objectName(r, of))
	case n < 38 && q.namespace != "":
		q.name = w.objectName(r, of)
		add("fieldSelector", "metadata.name="+q.name+",metadata.namespace="+q.namespace)
	case n < 48 && of.plural == "pods":
		add("fieldSelector", "spec.nodeName=node-0")
	}
	if chance(r, 20) {
		add("labelSelector", oneOf(r, "app=a", "app in (a,b)", "app!=a", "!app"))
	}
	switch n := r.IntN(100); {
	case n < 50:
		add("resourceVersion", "0")
	case n < 65 && verb == "watch":
		add("sendInitialEvents", "true")
		add("resourceVersionMatch", "NotOlderThan")
		add("allowWatchBookmarks", "true")
		if chance(r, 50) {
			add("resourceVersion", "0")
		}
	case n < 65:
		add("limit", oneOf(r, "1", "500"))
	}
	r.Shuffle(len(query), func(i, j int) { query[i], query[j] = query[j], query[i] })
	q.query = strings.Join(query, "&")
}

// named makes the request one about an object.
func (w *world) named(r *rand.Rand, q *request, of resource) {
	q.name = w.objectName(r, of)
	q.path = of.path(q.namespace) + "/" + q.name
	if of.plural == "namespaces" { // the API server takes the object's name for its namespace
		q.namespace = q.name
	}
}

func (w *world) objectName(r *rand.Rand, of resource) string {
	switch {
	case of.plural == "nodes":
		return oneOf(r, "node-0", "node-1", "z")
	case of.plural == "namespaces":
		return oneOf(r, append(slices.Clone(w.namespaces), "default", "z")...)
	case of.plural == "clusterroles":
		return oneOf(r, append(slices.Clone(w.clusters), "view", "z")...)
	case of.plural == "roles":
		return oneOf(r, "role-0", "role-1", "z")
	case of.cluster:
		return oneOf(r, w.prefix+"a", w.prefix+"b", "z")
	case of.plural == "serviceaccounts" && chance(r, 20):
		return "default"
	}
	return oneOf(r, append(slices.Clone(objectNames), "z")...)
}

// respell spells a few reads in another way, for which the API server decides what it
// means.
func (w *world) respell(r *rand.Rand, q *request) {
	if !chance(r, 12) {
		return
	}
	q.read, q.comparable = false, false
	switch r.IntN(6) {
	case 0: // the old form of a WATCH
		for _, root := range []string{"/api/v1/", "/apis/"} {
			if rest, ok := strings.CutPrefix(q.path, root); ok {
				if root == "/apis/" {
					parts := strings.SplitN(rest, "/", 3)
					root, rest = root+parts[0]+"/"+parts[1]+"/", parts[2]
				}
				q.path, q.stream = root+"watch/"+rest, true
				break
			}
		}
		if !strings.Contains(q.query, "timeoutSeconds") {
			q.query = strings.TrimPrefix(q.query+"&timeoutSeconds=5", "&")
		}
	case 1: // a letter in another spelling
		i := strings.LastIndex(q.path, "/") + 1
		q.path = q.path[:i] + fmt.Sprintf("%%%02x", q.path[i]) + q.path[i+1:]
	case 2:
		q.path += "/"
	case 3:
		i := strings.LastIndex(q.path, "/")
		q.path = q.path[:i] + "/" + q.path[i:]
	case 4: // a repeated or unusual parameter
		q.stream = true // perhaps
		q.query = strings.TrimPrefix(q.query+"&timeoutSeconds=5&"+oneOf(r, "watch=1&watch=0", "watch=0&watch=1", "watch=", "watch=false", "Watch=1", "watch=yes"), "&")
	case 5:
		q.query = strings.TrimPrefix(q.query+"&"+oneOf(r, "fieldSelector=metadata.name%3Da", "fieldSelector=metadata.name%3D%3Da", "fieldSelector=", "labelSelector=%2B", "fieldSelector=nonsense"), "&")
	}
}

// pathRequest draws a request about something else than objects.
func (w *world) pathRequest(r *rand.Rand) *request {
	return &request{form: now, method: oneOf(r, http.MethodGet, http.MethodGet, http.MethodHead), accept: jsonType,
		path: oneOf(r, "/version", "/api", "/apis", "/api/v1", "/apis/apps/v1", "/openapi/v3", "/logs", "/livez", "/readyz", "/healthz", "/debug/pprof/cmdline", "/apis/"+widgetGroup+"/v1", "/nonsense")}
}
