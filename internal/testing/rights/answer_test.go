// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"sigs.k8s.io/yaml"
)

// An answer is what a server said.
type answer struct {
	code    int
	message string   // of the Status, if it is an error
	names   []string // of the objects, for a LIST or GET in JSON
	// watches are the codes of the watches of a multiwatch.
	watches []int
	// granted are the namespaces of an answer to whereTo, "" for all.
	granted []string
	body    []byte
}

func (a answer) String() string {
	switch {
	case a.code >= 400:
		return fmt.Sprintf("%d %q", a.code, a.message)
	case a.granted != nil:
		return fmt.Sprintf("%d, in %q", a.code, a.granted)
	case a.watches != nil:
		return fmt.Sprintf("%d, its watches %v", a.code, a.watches)
	}
	return fmt.Sprintf("%d %v", a.code, a.names)
}

// maxBody is how much of an answer is read. Lists of a test cluster are smaller.
const maxBody = 8 << 20

// send sends a request as the identity. Of an open watch it reads nothing: the answer's
// code arrives before the events.
func (i *identity) send(ctx context.Context, s server, q *request) (answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	url := s.url + q.path
	if q.query != "" {
		url += "?" + q.query
	}
	r, err := http.NewRequestWithContext(ctx, q.method, url, bytes.NewReader(q.body))
	if err != nil {
		return answer{}, err
	}
	r.Header = http.Header{}
	maps.Copy(r.Header, i.header)
	if q.accept != "" {
		r.Header.Set("Accept", q.accept)
	}
	if q.contentType != "" {
		r.Header.Set("Content-Type", q.contentType)
	}
	resp, err := i.client(s).Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	a := answer{code: resp.StatusCode}
	if q.stream && a.code == http.StatusOK {
		return a, nil
	}
	if a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody)); err != nil {
		return answer{}, err
	}
	if a.code >= 400 {
		a.message = message(a.body)
	} else if q.watches != nil {
		a.watches, err = codes(a.body, len(q.watches))
	} else if q.form == whereTo {
		a.granted, err = granted(a.body, q.namespaces)
	} else if q.method == http.MethodGet {
		a.names = names(a.body)
	}
	return a, err
}

// codes returns those of the watches in a multiwatch: of their ERROR event, or 200.
func codes(body []byte, count int) ([]int, error) {
	found := make([]int, count)
	for i := range found {
		found[i] = http.StatusOK
	}
	for line := range bytes.Lines(body) {
		var event struct {
			Watch  int
			Type   string
			Object struct{ Code int }
		}
		if err := json.Unmarshal(line, &event); err != nil || event.Watch >= count {
			return nil, fmt.Errorf("a line of the multiwatch: %q", line)
		}
		if event.Type == "ERROR" {
			found[event.Watch] = event.Object.Code
		}
	}
	return found, nil
}

// granted returns where an answer says that the caller may, of some namespaces; "" is all.
func granted(body []byte, of []string) ([]string, error) {
	var said struct {
		All        bool
		Namespaces []string
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, fmt.Errorf("%w: %q", err, body)
	}
	if said.All {
		return append(said.Namespaces, ""), nil
	}
	return slices.DeleteFunc(said.Namespaces, func(name string) bool { return !slices.Contains(of, name) }), nil
}

// message returns that of a Status in any encoding, or the text itself.
func message(body []byte) string {
	var s metav1.Status
	var unknown runtime.Unknown
	switch {
	case bytes.HasPrefix(body, []byte("k8s\x00")):
		if unknown.Unmarshal(body[4:]) == nil && s.Unmarshal(unknown.Raw) == nil {
			return s.Message
		}
	case bytes.HasPrefix(body, []byte{0xd9, 0xd9, 0xf7}): // CBOR's own tag
		if cbor.Unmarshal(body, &s) == nil {
			return s.Message
		}
	default:
		if yaml.Unmarshal(body, &s) == nil && s.Kind == "Status" { // also JSON
			return s.Message
		}
	}
	return strings.TrimSpace(string(body))
}

// names returns those of the objects in a list, a Table or an object, nil if the text is
// not JSON.
func names(body []byte) []string {
	type object struct {
		Metadata struct{ Namespace, Name string }
	}
	var all struct {
		object
		Items []object
		Rows  []struct{ Object object }
	}
	if json.Unmarshal(body, &all) != nil {
		return nil
	}
	for _, row := range all.Rows {
		all.Items = append(all.Items, row.Object)
	}
	if all.Metadata.Name != "" {
		all.Items = append(all.Items, all.object)
	}
	found := []string{}
	for _, o := range all.Items {
		found = append(found, o.Metadata.Namespace+"/"+o.Metadata.Name)
	}
	slices.Sort(found)
	return found
}

// versions returns the name, UID and RV of each object in a list.
func versions(list []byte) []string {
	var all struct {
		Items []struct {
			Metadata struct{ Name, UID, ResourceVersion string }
		}
	}
	if err := json.Unmarshal(list, &all); err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, o := range all.Items {
		found = append(found, o.Metadata.Name+" "+o.Metadata.UID+" "+o.Metadata.ResourceVersion)
	}
	return found
}
