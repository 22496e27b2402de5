// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// Below /at/<when>, a gateway serves the state at a moment, and replays what followed:
// docs/extensions.md describes it. These requests are answered from a record, once. So
// nothing here retries: a failure is shown, and people step again.

const (
	acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	pageSize    = "500"
	maxPage     = 1 << 30
)

// annotations of a bookmark, see docs/extensions.md.
const (
	momentAnnotation = "watchkeeper/moment"
	liveAnnotation   = "watchkeeper/live"
)

// ListAt takes the list at a moment, which is written as in /at/<when>.
func (f *Feed) ListAt(ctx context.Context, c Collection, when string) error {
	f.Begin(true)
	for next := ""; ; {
		query := url.Values{"limit": {pageSize}}
		if next != "" {
			query.Set("continue", next)
		}
		list, err := f.page(ctx, c, when, query)
		if err != nil {
			return err
		}
		for _, o := range list.Items {
			if err := f.Item(o); err != nil {
				return err
			}
		}
		if next = list.Continue; next == "" {
			f.End(list)
			f.Flush()
			return nil
		}
	}
}

func (f *Feed) page(ctx context.Context, c Collection, when string, query url.Values) (*scan.List, error) {
	body, err := c.get(ctx, when, query)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxPage))
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	return scan.ParseList(string(text), "")
}

// Replay applies what followed the list of [Feed.ListAt] at a multiple of real time, until
// it has caught up: it then returns nil. It calls reached with the moments that the replay
// has reached.
func (f *Feed) Replay(ctx context.Context, c Collection, when string, speed float64, reached func(time.Time)) error {
	body, err := c.get(ctx, when, url.Values{
		"watch": {"true"}, "resourceVersion": {kube.FormatRV(f.head)}, "allowWatchBookmarks": {"true"},
		"speed": {strconv.FormatFloat(speed, 'f', -1, 64)},
	})
	if err != nil {
		return err
	}
	defer body.Close()
	columns := f.printer.definitions
	for r := bufio.NewReader(body); ; {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return errors.New("the replay ended")
		}
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		frame, err := scan.ParseFrame(line)
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		switch frame.Type {
		case kube.Error:
			return fmt.Errorf("replay: %s", statusMessage([]byte(frame.Status)))
		case kube.Bookmark:
			live := f.bookmark(frame.Object, reached)
			f.Flush()
			if live {
				return nil
			}
		default:
			if frame.Object.Columns == "" {
				frame.Object.Columns = columns
			}
			columns = frame.Object.Columns
			if err := f.Apply(frame.Type, frame.Object); err != nil {
				return err
			}
			if r.Buffered() == 0 {
				f.Flush()
			}
		}
	}
}

func (f *Feed) bookmark(o *scan.Object, reached func(time.Time)) (live bool) {
	f.Bookmark(o.RV, o)
	var annotations map[string]string
	if json.Unmarshal([]byte(cmp.Or(o.Annotations(), "{}")), &annotations) != nil {
		return false
	}
	if at, err := time.Parse(time.RFC3339Nano, annotations[momentAnnotation]); err == nil {
		reached(at)
	}
	return annotations[liveAnnotation] == "true"
}

// get requests the collection at a moment.
func (c Collection) get(ctx context.Context, when string, query url.Values) (io.ReadCloser, error) {
	u := c.URL("/at/" + when)
	all := u.Query()
	all.Set("includeObject", "Object")
	for name, values := range query {
		all[name] = values
	}
	u.RawQuery = all.Encode()
	return Get(ctx, c.Transport, u, acceptTable)
}

// Get sends a request. An answer other than 200 is an error with the message of its Status.
func Get(ctx context.Context, transport http.RoundTripper, u *url.URL, accept string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return nil, fmt.Errorf("%d: %s", resp.StatusCode, statusMessage(body))
}

// statusMessage returns the message of a Status, or a text itself.
func statusMessage(body []byte) string {
	var status struct{ Message string }
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return table.Clean(status.Message)
	}
	return table.Clean(string(bytes.TrimSpace(body)))
}
