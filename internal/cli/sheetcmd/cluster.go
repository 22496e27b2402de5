// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheetcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
	"github.com/watchkeeper/watchkeeper/internal/cli/termtext"
	"github.com/watchkeeper/watchkeeper/internal/serve/sheet"
)

// pageSize is the number of objects in a page of a list.
const pageSize = 500

// A cluster is the API of the server in use.
type cluster struct {
	server string
	http   *http.Client
	agent  string
}

func newCluster(flags *connect.Flags) (*cluster, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w: check --kubeconfig, --context, --cluster and --user", err)
	}
	server, err := connect.ServerURL(config)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	return &cluster{server.String(), client, config.UserAgent}, err
}

// A refusal is a Status that the server answered with.
type refusal struct{ metav1.Status }

// Error leaves out a whole object, which may be a Secret, and what is said before it: with these
// the API server begins why it cannot read what a patch makes of the object. The page does so, too.
func (e *refusal) Error() string {
	return termtext.Plain(wholeObject.ReplaceAllString(e.Message, ""))
}

var wholeObject = regexp.MustCompile(`(?: ?"" is invalid: patch: )?Invalid value: "\{(?:[^"\\]|\\.)*": `)

// path returns the segments of the path of a resource's objects in a namespace, "" for all.
func path(r sheet.Resource, namespace string) []string {
	p := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		p = []string{"api", r.Version}
	}
	if namespace != "" {
		p = append(p, "namespaces", namespace)
	}
	return append(p, r.Resource)
}

func (c *cluster) do(ctx context.Context, method string, path []string, query url.Values, body []byte, into any) error {
	target, err := url.Parse(c.server)
	if err != nil {
		return err
	}
	for _, segment := range path { // of a workbook, which may come from anybody
		if segment == "" || segment == "." || segment == ".." {
			return fmt.Errorf("%q cannot be part of a path of the API", segment)
		}
		target = target.JoinPath(url.PathEscape(segment))
	}
	target.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	if c.agent != "" {
		r.Header.Set("User-Agent", c.agent)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json-patch+json")
	}
	res, err := c.http.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return fmt.Errorf("%s: %w: check --server", c.server, err)
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		failed := &refusal{}
		if json.NewDecoder(res.Body).Decode(&failed.Status) != nil || failed.Message == "" {
			return fmt.Errorf("%s answered %s", c.server, res.Status)
		}
		return failed
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		return fmt.Errorf("the answer of %s cannot be read: %w", c.server, err)
	}
	return nil
}

// list returns the objects of a tab, in the order of the API.
func (c *cluster) list(ctx context.Context, t *sheet.Tab) (objects []json.RawMessage, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	if t.Selector != "" {
		query.Set("labelSelector", t.Selector)
	}
	for {
		var page struct {
			Metadata metav1.ListMeta
			Items    []json.RawMessage
		}
		err := c.do(ctx, http.MethodGet, path(t.Resource, t.Namespace), query, nil, &page)
		if failed, ok := errors.AsType[*refusal](err); ok && failed.Code == http.StatusGone && query.Has("continue") {
			// The state of the first page is compacted: read all at once.
			query.Del("continue")
			query.Del("limit")
			objects = nil
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Resource.Resource, err)
		}
		objects = append(objects, page.Items...)
		if page.Metadata.Continue == "" {
			return objects, nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

// get returns an object as it is now.
func (c *cluster) get(ctx context.Context, o *sheet.Object) (object json.RawMessage, err error) {
	err = c.do(ctx, http.MethodGet, append(path(o.Resource, o.Namespace), o.Name), nil, nil, &object)
	return object, err
}

// patch patches an object, or only tries it.
func (c *cluster) patch(ctx context.Context, o *sheet.Object, operations []sheet.Operation, dryRun bool) error {
	body, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	query := url.Values{"fieldManager": {sheet.FieldManager}}
	if dryRun {
		query.Set("dryRun", "All")
	}
	err = c.do(ctx, http.MethodPatch, append(path(o.Resource, o.Namespace), o.Name), query, body, nil)
	if failed, ok := errors.AsType[*refusal](err); ok && failed.Code == http.StatusUnprocessableEntity && strings.Contains(failed.Message, "testing ") {
		return errors.New("it was changed meanwhile")
	}
	return err
}
