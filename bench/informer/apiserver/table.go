// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// tableFormat is JSON of Tables with the whole objects in their rows
// (includeObject=Object), which a gateway asks for.
//
//	list:   {"kind":"Table",…,"metadata":{…},"columnDefinitions":[…],"rows":[row…]}
//	event:  {"type":…,"object":{"kind":"Table",…,"rows":[row]}}, with columns in the first
//	row:    {"cells":[…],"object":{…}}
//	object: "cells":[…],"object":{…}
type tableFormat struct{ object jsonFormat }

func (tableFormat) listType() string  { return runtime.ContentTypeJSON }
func (tableFormat) watchType() string { return runtime.ContentTypeJSON }

// columns are those of Pods. Nodes are printed in them, too.
var columns = mustMarshal([]metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "the name, unique in its namespace"},
	{Name: "Ready", Type: "string", Description: "how many of the containers are ready"},
	{Name: "Status", Type: "string", Description: "the phase, or what keeps it from the next one"},
	{Name: "Restarts", Type: "string", Description: "how often containers were started again"},
	{Name: "Age", Type: "string", Description: "the time since it was created"},
	{Name: "IP", Type: "string", Priority: 1, Description: "the address of the Pod"},
	{Name: "Node", Type: "string", Priority: 1, Description: "the node it runs on"},
	{Name: "Nominated Node", Type: "string", Priority: 1, Description: "the node it may run on when others have left"},
	{Name: "Readiness Gates", Type: "string", Priority: 1, Description: "the conditions it waits for"},
})

func cells(o runtime.Object) []byte {
	if n, ok := o.(*corev1.Node); ok {
		return mustMarshal([]any{n.Name, "", "Ready", "", "5d", "", "", "", ""})
	}
	p := o.(*corev1.Pod)
	return mustMarshal([]any{p.Name, "1/1", string(p.Status.Phase), "0", "5d", p.Status.PodIP, p.Spec.NodeName, "<none>", "<none>"})
}

func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is all strings and numbers
	}
	return b
}

func (f tableFormat) newObject(o runtime.Object, rv string) (object, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return object{}, err
	}
	return newObject(fmt.Appendf(nil, `"cells":%s,"object":%s`, cells(o), body), rv)
}

func (tableFormat) itemSize(o object) int { return len(o.body) }

func (tableFormat) appendItem(dst []byte, o object, rv int64, first bool) []byte {
	if !first {
		dst = append(dst, ',')
	}
	return append(o.appendTo(append(dst, '{'), rv), '}')
}

func (tableFormat) appendListHead(dst []byte, meta metav1.ListMeta, _ int) []byte {
	return fmt.Appendf(dst, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":%s,"columnDefinitions":%s,"rows":[`, mustMarshal(meta), columns)
}

func (tableFormat) appendListTail(dst []byte) []byte { return append(dst, "]}\n"...) }

func (f tableFormat) appendEvent(dst []byte, typ string, o object, rv int64, first bool) []byte {
	dst = appendTableHead(dst, typ, rv, first)
	dst = append(o.appendTo(dst, rv), "}]}}\n"...)
	return dst
}

// appendTableHead appends what is before the one row's members.
func appendTableHead(dst []byte, typ string, rv int64, first bool) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, typ...)
	dst = append(dst, `","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"`...)
	dst = strconv.AppendInt(dst, rv, 10)
	dst = append(dst, `"},"columnDefinitions":`...)
	if first {
		dst = append(dst, columns...)
	} else {
		dst = append(dst, "null"...)
	}
	return append(dst, `,"rows":[{`...)
}

// appendOther has the object of a bookmark in a row, and a Status as it is.
func (f tableFormat) appendOther(dst []byte, typ string, o runtime.Object) ([]byte, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return f.object.appendOther(dst, typ, o)
	}
	rv, err := strconv.ParseInt(p.ResourceVersion, 10, 64)
	if err != nil {
		return dst, err
	}
	dst = appendTableHead(dst, typ, rv, false)
	return fmt.Appendf(dst, `"cells":%s,"object":%s}]}}`+"\n", cells(p), mustMarshal(p)), nil
}
