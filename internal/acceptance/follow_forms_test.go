// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A followForm is a form in which a follower takes its objects. What it holds
// of each is the RV; of a Table the cells, too, those aside that are ages.
type followForm struct {
	name        string
	list, watch string // Accept
	// decode reads a list, with its RV.
	decode func(body []byte) (state map[string]string, rv string, err error)
	// next reads an event.
	next func(*bufio.Reader) (seen, error)
}

// A seen is an event as a follower takes it.
type seen struct {
	typ, key, value string
	columns         string // of a Table, in its first event
	end             bool   // the bookmark that ends the initial events
}

// of describes the object of an event.
func (s *seen) of(namespace, name, rv string, annotations map[string]string) {
	s.key, s.value = namespace+"/"+name, rv
	s.end = annotations[metav1.InitialEventsAnnotationKey] == "true"
}

var (
	asJSON  = followForm{"JSON", "application/json", "application/json", jsonList, jsonEvent}
	asTable = followForm{"Table", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v1", tableList, tableEvent}
	asMeta  = followForm{
		"metadata in protobuf",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
		metaList, metaEvent,
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

func jsonEvent(r *bufio.Reader) (s seen, err error) {
	line, err := r.ReadBytes('\n')
	var e frame
	if err == nil {
		err = json.Unmarshal(line, &e)
	}
	s.typ = e.Type
	m := e.Object.Metadata
	s.of(m.Namespace, m.Name, m.ResourceVersion, m.Annotations)
	return s, err
}

// A followedTable is what of a Table is looked at.
type followedTable struct {
	Metadata          struct{ ResourceVersion string }
	ColumnDefinitions []struct{ Name, Type, Description string }
	Rows              []struct {
		Cells  []any
		Object metav1.PartialObjectMetadata
	}
}

var age = regexp.MustCompile(`^(\d+[smhdy]){1,2}$`)

// row describes a row as a value.
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

func tableEvent(r *bufio.Reader) (s seen, err error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return s, err
	}
	var e struct {
		Type   string
		Object followedTable
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return s, err
	}
	if s.typ = e.Type; s.typ == "ERROR" {
		return s, nil
	}
	if len(e.Object.Rows) != 1 {
		return s, fmt.Errorf("%d rows in an event", len(e.Object.Rows))
	}
	o := e.Object.Rows[0].Object
	s.of(o.Namespace, o.Name, e.Object.row(0), o.Annotations)
	if e.Object.ColumnDefinitions != nil {
		s.columns = fmt.Sprint(e.Object.ColumnDefinitions)
	}
	return s, nil
}

// unwrap returns the message in an envelope.
func unwrap(data []byte) ([]byte, error) {
	var u runtime.Unknown
	raw, ok := strings.CutPrefix(string(data), "k8s\x00")
	if !ok {
		return nil, errors.New("no protobuf envelope")
	}
	err := u.Unmarshal([]byte(raw))
	return u.Raw, err
}

func metaList(body []byte) (map[string]string, string, error) {
	var list metav1.PartialObjectMetadataList
	raw, err := unwrap(body)
	if err == nil {
		err = list.Unmarshal(raw)
	}
	return metaState(&list), list.ResourceVersion, err
}

func metaEvent(r *bufio.Reader) (s seen, err error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return s, err
	}
	data := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(r, data); err != nil {
		return s, err
	}
	var e metav1.WatchEvent
	if err := e.Unmarshal(data); err != nil {
		return s, err
	}
	if s.typ = e.Type; s.typ == "ERROR" {
		return s, nil
	}
	raw, err := unwrap(e.Object.Raw)
	if err != nil {
		return s, err
	}
	var o metav1.PartialObjectMetadata
	err = o.Unmarshal(raw)
	s.of(o.Namespace, o.Name, o.ResourceVersion, o.Annotations)
	return s, err
}
