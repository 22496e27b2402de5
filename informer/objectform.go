// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bufio"
	"io"
	"net/url"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

const (
	acceptJSON  = "application/json"
	acceptTable = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"
)

// objectForm is JSON for a sink that keeps objects as they are, and that may
// want to know how the upstream prints them. Its objects are the sink's to
// keep. Lists are read as a whole.
type objectForm struct {
	kind    string // of the items; "" to tell from the list's
	tables  bool
	columns string // of the last list or stream that told them
}

func (f *objectForm) accept(query url.Values) string {
	if !f.tables {
		return acceptJSON
	}
	query.Set("includeObject", "Object")
	return acceptTable
}

func (f *objectForm) plainer() bool {
	was := f.tables
	f.tables = false
	return was
}

func (f *objectForm) list(body io.Reader, _ *scan.List, item func(*scan.Object)) (*scan.List, error) {
	list, err := scanPage(body, f.kind)
	if err != nil {
		return nil, err
	}
	f.columns = list.Columns
	for _, o := range list.Items {
		item(o)
	}
	list.Items = nil
	return list, nil
}

func (f *objectForm) watch(body io.Reader, streaming bool) frames[*scan.Object] {
	return &objectFrames{lines: lines{body: bufio.NewReaderSize(body, frameBuffer)}, form: f, initial: streaming}
}

type objectFrames struct {
	lines
	form    *objectForm
	initial bool   // in the list that the stream begins with
	columns string // which the first frame told
}

func (s *objectFrames) next() (frame[*scan.Object], error) {
	line, err := s.lines.next()
	if err != nil {
		return frame[*scan.Object]{}, err
	}
	f, err := scan.ParseFrame(string(line))
	if err != nil {
		return frame[*scan.Object]{}, err
	}
	if f.Type == kube.Error {
		return frame[*scan.Object]{typ: f.Type, status: []byte(f.Status)}, nil
	}
	columns := f.Object.Columns
	if columns != "" {
		if s.columns = s.form.columns; columns != s.columns {
			s.columns = strings.Clone(columns)
			s.form.columns = s.columns
		}
	}
	f.Object.Columns = s.columns
	s.initial = s.initial && !f.InitialEventsEnd()
	if columns != "" || s.initial {
		// There are columns in the text, which are not to be kept; and a list
		// is kept for longer than an event.
		if f, err = f.Detached(s.columns); err != nil {
			return frame[*scan.Object]{}, err
		}
	}
	return frame[*scan.Object]{typ: f.Type, rv: f.Object.RV, end: f.InitialEventsEnd(), columns: s.columns, object: f.Object}, nil
}
