// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// A followForm is the form in which a follower requests its objects. It holds the
// RV of each; of a Table also the cells, except ages.
type followForm struct {
	name        string
	list, watch string // Accept
	// decode reads a list, with its RV.
	decode func(body []byte) (state map[string]string, rv string, err error)
	// event describes an event.
	event func(watchread.Frame) (seen, error)
}

// A seen is an event as a follower decodes it.
type seen struct {
	typ, key, value string
	columns         string // of a Table, in its first event
	end             bool   // the end bookmark
}

// of describes the object of an event.
func (s *seen) of(namespace, name, rv string, annotations map[string]string) {
	s.key, s.value = namespace+"/"+name, rv
	s.end = annotations[metav1.InitialEventsAnnotationKey] == "true"
}

var (
	asJSON  = followForm{"JSON", "application/json", "application/json", jsonList, objectEvent}
	asTable = followForm{"Table", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v1", tableList, tableEvent}
	asMeta  = followForm{
		"metadata in protobuf",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
		metaList, objectEvent,
	}
)

func jsonList(body []byte) (map[string]string, string, error) {
	var list metav1.PartialObjectMetadataList
	err := json.Unmarshal(body, &list)
	return metaState(&list), list.ResourceVersion, err
}

func metaState(list *metav1.PartialObjectMetadataList) map[string]string {
	state := map[string]string{}
	for _, o := range list.Items {
		state[o.Namespace+"/"+o.Name] = o.ResourceVersion
	}
	return state
}

func objectEvent(f watchread.Frame) (s seen, err error) {
	m, err := f.Meta()
	s.typ = f.Type
	s.of(m.Namespace, m.Name, m.RV, m.Annotations)
	return s, err
}

// A followedTable holds the compared fields of a Table.
type followedTable struct {
	Metadata          struct{ ResourceVersion string }
	ColumnDefinitions []struct{ Name, Type, Description string }
	Rows              []struct {
		Cells  []any
		Object metav1.PartialObjectMetadata
	}
}

var age = regexp.MustCompile(`^(\d+[smhdy]){1,2}$`)

// row describes a row as text.
func (t *followedTable) row(i int) string {
	var cells []string
	for _, cell := range t.Rows[i].Cells {
		cells = append(cells, age.ReplaceAllString(fmt.Sprint(cell), "age"))
	}
	return t.Rows[i].Object.ResourceVersion + " " + strings.Join(cells, "|")
}

func tableList(body []byte) (map[string]string, string, error) {
	var t followedTable
	err := json.Unmarshal(body, &t)
	state := map[string]string{"columns": fmt.Sprint(t.ColumnDefinitions)}
	for i := range t.Rows {
		o := t.Rows[i].Object
		state[o.Namespace+"/"+o.Name] = t.row(i)
	}
	return state, t.Metadata.ResourceVersion, err
}

func tableEvent(f watchread.Frame) (s seen, err error) {
	if s.typ = f.Type; s.typ == "ERROR" {
		return s, nil
	}
	var t followedTable
	if err := json.Unmarshal(f.Object, &t); err != nil {
		return s, err
	}
	if len(t.Rows) != 1 {
		return s, fmt.Errorf("%d rows in an event", len(t.Rows))
	}
	o := t.Rows[0].Object
	s.of(o.Namespace, o.Name, t.row(0), o.Annotations)
	if t.ColumnDefinitions != nil {
		s.columns = fmt.Sprint(t.ColumnDefinitions)
	}
	return s, nil
}

func metaList(body []byte) (map[string]string, string, error) {
	var list metav1.PartialObjectMetadataList
	u, err := watchread.Envelope(body)
	if err == nil {
		err = list.Unmarshal(u.Raw)
	}
	return metaState(&list), list.ResourceVersion, err
}
