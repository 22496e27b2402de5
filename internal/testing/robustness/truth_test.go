// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// A version is one version of one object, or its deletion.
type version struct {
	RV   uint64
	Key  string // namespace/name
	UID  string
	JSON string // as the API server sends it; of a deletion, the last JSON with the RV of the deletion
	// Deleted is set for a deletion.
	Deleted bool

	labels labels.Set
	fields fields.Set
	prev   *version  // the previous version, nil for a creation
	seen   time.Time // when etcd sent it, or the simulated API server wrote it
}

// at returns the JSON of the version with another RV.
func (v *version) at(rv uint64) string {
	if v == nil {
		return ""
	}
	old := `"resourceVersion":"` + strconv.FormatUint(v.RV, 10) + `"`
	return strings.Replace(v.JSON, old, `"resourceVersion":"`+strconv.FormatUint(rv, 10)+`"`, 1)
}

// A truth is the complete history of one resource after base, from etcd. A restore of
// etcd begins another one, which has what happened up to the backup, too.
type truth struct {
	base     uint64
	start    map[string]*version // at base
	versions []*version          // after base, by RV

	// What follows is zero unless etcd was restored.

	earlier      *truth    // the truth that the restore ended
	backup       uint64    // RV up to which both are the same
	bumped       bool      // it continues above all earlier RVs
	began, ended time.Time // when the API server had it; a zero time is no bound
	head         uint64    // the RV at its end
	over         gap       // after this gap, it is continued by then, see join
	then         *truth
}

// A state is the objects of a resource at one RV, by key.
type state map[string]*version

// at returns the state at an RV.
func (t *truth) at(rv uint64) state {
	if t.then != nil && rv >= t.over.To {
		return t.then.at(rv)
	}
	s := make(state, len(t.start))
	for k, v := range t.start {
		s[k] = v
	}
	for _, v := range t.versions {
		if v.RV > rv {
			break
		}
		if v.Deleted {
			delete(s, v.Key)
		} else {
			s[v.Key] = v
		}
	}
	return s
}

// after returns the versions with RVs in (from, to].
func (t *truth) after(from, to uint64) []*version {
	if t.then != nil {
		return append(t.own(from, min(to, t.over.From)), t.then.after(max(from, t.over.To), to)...)
	}
	return t.own(from, to)
}

// own is after, without then.
func (t *truth) own(from, to uint64) []*version {
	i := sort.Search(len(t.versions), func(i int) bool { return t.versions[i].RV > from })
	j := sort.Search(len(t.versions), func(i int) bool { return t.versions[i].RV > to })
	return slices.Clip(t.versions[i:max(i, j)])
}

// A selector is the part of a resource that a client requests.
type selector struct {
	Namespace, Labels, Fields string

	labels labels.Selector
	fields fields.Selector
}

func newSelector(namespace, l, f string) selector {
	s := selector{Namespace: namespace, Labels: l, Fields: f}
	var err error
	if s.labels, err = labels.Parse(l); err == nil {
		s.fields, err = fields.ParseSelector(f)
	}
	if err != nil {
		panic(err) // a bug in the test
	}
	return s
}

func (s selector) matches(v *version) bool {
	if v == nil || v.Deleted {
		return false
	}
	namespace, _, _ := strings.Cut(v.Key, "/")
	return (s.Namespace == "" || namespace == s.Namespace) && s.labels.Matches(v.labels) && s.fields.Matches(v.fields)
}

// transition returns the event that a watcher gets for a change
// (docs/kubernetes-watch.md, "Events"). ok is false if it gets none.
func (s selector) transition(prev, cur *version, rv uint64) (e event, ok bool) {
	before, now := s.matches(prev), s.matches(cur)
	switch {
	case before && now:
		return event{Type: "MODIFIED", RV: rv, Key: cur.Key, UID: cur.UID, Text: cur.JSON}, true
	case now:
		return event{Type: "ADDED", RV: rv, Key: cur.Key, UID: cur.UID, Text: cur.JSON}, true
	case before:
		return event{Type: "DELETED", RV: rv, Key: prev.Key, UID: prev.UID, Text: prev.at(rv)}, true
	}
	return event{}, false
}

// expected returns what a watcher gets of the versions in (from, to].
func (t *truth) expected(s selector, from, to uint64) []event {
	var out []event
	for _, v := range t.after(from, to) {
		if e, ok := s.transition(v.prev, v, v.RV); ok {
			out = append(out, e)
		}
	}
	return out
}

// expectedList returns the items of a list at an RV, in the order of keys.
func (t *truth) expectedList(s selector, rv uint64) []event {
	var out []event
	for _, v := range t.at(rv) {
		if s.matches(v) {
			out = append(out, event{Type: "ADDED", RV: v.RV, Key: v.Key, UID: v.UID, Text: v.JSON})
		}
	}
	slices.SortFunc(out, func(a, b event) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// An etcdKV is a key of etcd in the encoding of its JSON gateway.
type etcdKV struct {
	Key, Value  string // base64
	ModRevision string `json:"mod_revision"`
}

// decode reads an object as etcd stores it: built-in kinds in protobuf, custom
// resources in JSON, both without a resourceVersion.
func decode(kv etcdKV) (*version, error) {
	raw, err := base64.StdEncoding.DecodeString(kv.Value)
	if err != nil {
		return nil, err
	}
	v := &version{}
	if v.RV, err = strconv.ParseUint(kv.ModRevision, 10, 64); err != nil {
		return nil, err
	}
	var text []byte
	if bytes.HasPrefix(raw, []byte("k8s\x00")) {
		text, err = decodeTyped(raw, v.RV)
	} else {
		text, err = decodeCustom(raw, v.RV)
	}
	if err != nil {
		return nil, err
	}
	v.JSON = string(text)
	return v, v.index()
}

// index reads the fields that selectors and validators use from the JSON.
func (v *version) index() error {
	var o struct {
		Metadata struct {
			Name, Namespace, UID string
			Labels               map[string]string
		}
		Spec   struct{ NodeName string }
		Status struct{ Phase string }
	}
	if err := json.Unmarshal([]byte(v.JSON), &o); err != nil {
		return err
	}
	v.Key, v.UID, v.labels = o.Metadata.Namespace+"/"+o.Metadata.Name, o.Metadata.UID, o.Metadata.Labels
	v.fields = fields.Set{
		"metadata.name": o.Metadata.Name, "metadata.namespace": o.Metadata.Namespace,
		"spec.nodeName": o.Spec.NodeName, "status.phase": o.Status.Phase,
	}
	return nil
}

func decodeTyped(raw []byte, rv uint64) ([]byte, error) {
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	switch o := o.(type) {
	case *corev1.ConfigMap:
		o.ResourceVersion = strconv.FormatUint(rv, 10)
	case *corev1.Pod:
		o.ResourceVersion = strconv.FormatUint(rv, 10)
	default:
		return nil, fmt.Errorf("%T is not a kind of this test", o)
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), "application/json")
	text, err := runtime.Encode(info.Serializer, o)
	return bytes.TrimSpace(text), err
}

func decodeCustom(raw []byte, rv uint64) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o map[string]any
	if err := d.Decode(&o); err != nil {
		return nil, err
	}
	o["metadata"].(map[string]any)["resourceVersion"] = strconv.FormatUint(rv, 10)
	return json.Marshal(o)
}
