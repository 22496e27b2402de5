// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/watchkeeper/watchkeeper/internal/cli/completion"
	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
	"github.com/watchkeeper/watchkeeper/internal/cli/refusal"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

const historyAPI = "/watchkeeper/v1/history"

// A client is a command that talks to a running gateway.
type client struct {
	streams
	flags     *connect.Flags
	server    string
	namespace string
	http      http.Client
	recorded  *api.History // see history; nil before the first use
	denied    []string     // what the command has left out, since the caller may not list it
	warned    bool         // an answer after recorded had a warning about the API server
	times     *zone        // of the times in errors; nil for the local zone
}

// addFlags adds kubectl's connection flags.
func (c *client) addFlags(f *pflag.FlagSet) { c.add(f, false) }

// addScopeFlags adds kubectl's connection flags and --namespace.
func (c *client) addScopeFlags(f *pflag.FlagSet) { c.add(f, true) }

func (c *client) add(f *pflag.FlagSet, namespace bool) {
	f.SortFlags = false
	c.flags = connect.NewFlags()
	c.flags.UserAgent, c.flags.Err = userAgent(), c.err
	c.flags.Timeout, c.flags.CacheDir, c.flags.DisableCompression = nil, nil, nil
	if !namespace {
		c.flags.Namespace = nil
	}
	c.flags.AddTo(f)
	if n := f.Lookup("namespace"); n != nil {
		n.Usage = "namespace; the default is that of the current context"
	}
}

// again returns the flags that a command needs to ask the same server about the same namespace.
func (c *client) again() string { return c.flags.Typed("namespace") + c.sameServer() }

func (c *client) sameServer() string { return c.flags.Typed("server", "kubeconfig", "context") }

// complete adds the completion of the command's arguments and flags.
func (c *client) complete(cmd *cobra.Command, o completion.Options) {
	completion.Add(cmd, completion.Server{Flags: c.flags, Connect: c.flags.Gateway}, o)
}

// prepare chooses the gateway.
func (c *client) prepare(ctx context.Context) (err error) {
	if c.server, err = c.flags.Gateway(ctx); err != nil {
		return err
	}
	if u, err := url.Parse(c.server); err == nil && strings.Contains(u.Path+"/", "/at/") {
		return fmt.Errorf("--server %q is the URL of a moment: name that of the gateway, without /at/, and give the moment to the command", c.server)
	}
	client, err := c.flags.HTTPClient()
	if err != nil {
		return fmt.Errorf("kubeconfig: %w: check --kubeconfig, --context, --cluster and --user", err)
	}
	c.http = *client
	return nil
}

// prepareScope chooses the gateway, and sets the namespace: that of the flag, of the
// current context, or none for all namespaces.
func (c *client) prepareScope(ctx context.Context, allNamespaces bool) error {
	if err := c.prepare(ctx); err != nil {
		return err
	}
	if allNamespaces {
		c.namespace = ""
		return nil
	}
	if c.namespace = *c.flags.Namespace; c.namespace != "" {
		return nil
	}
	// No kubeconfig is needed, but one that cannot be read stops kubectl, too.
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil && !clientcmd.IsEmptyConfig(err) {
		return fmt.Errorf("no namespace of the current context: %w: use --namespace", err)
	}
	c.namespace = cmp.Or(namespace, metav1.NamespaceDefault)
	return nil
}

// isNotFound reports whether the gateway has answered that something does not exist. Any other
// error does not say that.
func isNotFound(err error) bool { return hasCode(err, http.StatusNotFound) }

// hasCode reports whether the gateway has answered with a code.
func hasCode(err error, code int32) bool {
	status, ok := errors.AsType[*refusal.Error](err)
	return ok && status.Code == code
}

// An elsewhereError is the answer of a gateway that serves the API below a path.
type elsewhereError struct{ server, below string }

func (e *elsewhereError) Error() string {
	return fmt.Sprintf("the API is served below %s: use --server %s%s", e.below, e.server, strings.TrimSuffix(e.below, "/"))
}

// get decodes the gateway's JSON answer.
func (c *client) get(ctx context.Context, path string, query url.Values, into any) error {
	body, err := c.open(ctx, path, query)
	if err != nil {
		return err
	}
	defer body.Close()
	d := json.NewDecoder(body)
	d.UseNumber() // the values of patches keep their digits
	if err := d.Decode(into); err != nil {
		if isCut(err) || errors.Is(err, connect.ErrSilent) {
			return c.unreachable(err)
		}
		return fmt.Errorf("the answer of %s cannot be decoded: %w: is it watchkeeper?", c.server, err)
	}
	return nil
}

// open sends a request to the gateway and returns the body of the answer, which
// the caller closes. A status other than 200 is an error.
func (c *client) open(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	u := c.server + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent())
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	for _, warning := range resp.Header.Values("Warning") {
		c.warned = c.warned || strings.Contains(warning, "the API server")
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	status := &refusal.Error{}
	if json.NewDecoder(resp.Body).Decode(&status.Status) != nil || status.Message == "" {
		if !strings.HasPrefix(path, "/watchkeeper/") && c.recorded != nil { // it has answered as watchkeeper
			return nil, fmt.Errorf("the server behind %s answered %s to %s: it is no Kubernetes API server", c.server, resp.Status, path)
		}
		return nil, fmt.Errorf("%s answered %s: is it watchkeeper?", c.server, resp.Status)
	}
	if below, ok := strings.CutPrefix(status.Message, "the API is served below "); ok {
		below, _, _ = strings.Cut(below, ":")
		return nil, &elsewhereError{c.server, below}
	}
	if status.Code == http.StatusUnauthorized {
		return nil, fmt.Errorf("%s: %s: use --token, or a --context whose user it knows", c.server, status.Message)
	}
	status.InWords(cmp.Or(c.times, &zone{}).stamp)
	if hint := c.rights(status.Message); status.Code == http.StatusForbidden && hint != "" {
		status.Message += ": " + hint
	}
	if status.Message == "the server could not find the requested resource" || status.Message == "404 page not found" {
		return nil, fmt.Errorf("the server at %s has no history: is it watchkeeper?", c.server)
	}
	return nil, status
}

// rights says what somebody may do who lacks the right that a refusal names; "" if it names
// none, but a flag of the gateway.
func (c *client) rights(refusal string) string {
	switch lacks := lacksRight.FindString(refusal); {
	case lacks == "":
		return ""
	case strings.HasPrefix(lacks, "cannot get path"):
		return "ask an administrator for the ClusterRole watchkeeper-past of docs/shared-mode.md"
	case lacks == "the gateway may not":
		return "the user of its kubeconfig, or its ServiceAccount, needs that right"
	case c.namespace == "":
		return "name a namespace with -n"
	}
	return fmt.Sprintf("'kubectl auth can-i --list -n %s%s' says what you may", c.namespace, c.flags.Typed("kubeconfig", "context"))
}

var lacksRight = regexp.MustCompile(`cannot get path "/(at|watchkeeper)|cannot (get|list|watch) resource|the gateway may not|may not (get|list|watch)|may list none`)

// unreachable returns an error that says what to do if no server answers.
func (c *client) unreachable(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("no server at %s: start it with 'watchkeeper serve%s', or use --server", c.server, c.flags.Typed("kubeconfig", "context"))
	}
	if isCut(err) || errors.Is(err, io.EOF) { // before the answer
		return fmt.Errorf("the connection to %s was cut: %w: try again", c.server, err)
	}
	return fmt.Errorf("%s: %w: check --server", c.server, err)
}

// isCut reports whether a connection ended within an answer.
func isCut(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// history returns what is recorded, as far as the caller may read it in the namespace, as of
// its first call.
func (c *client) history(ctx context.Context) (*api.History, error) {
	if c.recorded != nil {
		return c.recorded, nil
	}
	var h api.History
	query := url.Values{}
	if c.namespace != "" {
		query.Set("namespace", c.namespace)
	}
	if err := c.get(ctx, historyAPI, query, &h); err != nil {
		return nil, err
	}
	if h.Now.IsZero() { // an older gateway
		h.Now = time.Now()
	}
	c.recorded = &h
	return c.recorded, nil
}

// reportSilence says on standard error that the API server does not answer the gateway, if
// a command has read up to a time that is after the last contact.
func (c *client) reportSilence(ctx context.Context, until time.Time, stamp func(time.Time) string) {
	up := c.silence(ctx, until)
	if up == nil {
		return
	}
	switch since := stamp(up.LastContact); {
	case up.LastContact.IsZero():
		fmt.Fprintln(c.err, "the API server has not answered: nothing newer than the record is known")
	case strings.HasPrefix(up.Reason, "the API server is not ready"), strings.HasSuffix(up.Reason, "does not accept the gateway's credentials"):
		fmt.Fprintf(c.err, "changes since %s may be missing: %s\n", since, up.Reason)
	default:
		fmt.Fprintf(c.err, "the API server has not answered since %s: nothing newer is known\n", since)
	}
}

// reportScope says on standard error what a recording is limited to.
func (c *client) reportScope(ctx context.Context) {
	h, err := c.history(ctx)
	if err != nil {
		return
	}
	if text := h.Recording.Scope.Lacks(c.namespace); text != "" {
		fmt.Fprintln(c.err, "left out: "+text)
	}
}

// silence returns what is known of the API server if it has not answered, or has not been
// ready, since a time or before; nil if it has.
func (c *client) silence(ctx context.Context, at time.Time) *api.Upstream {
	h, err := c.history(ctx)
	if err == nil && c.warned && h.Upstream != nil && h.Upstream.Answers { // it was asked before the outage
		c.recorded, c.warned = nil, false
		h, err = c.history(ctx)
	}
	if err != nil || h.Upstream == nil || h.Upstream.Answers || !at.After(h.Upstream.LastContact) {
		return nil
	}
	return h.Upstream
}

// reportLeftOut says on standard error what a command about everything recorded has left out:
// what the caller may not list, and which of the usual suspects are not recorded.
func (c *client) reportLeftOut(rec record) {
	if len(c.denied) > 0 {
		fmt.Fprintf(c.err, "left out, because you may not list them now: %s\n", strings.Join(c.denied, ", "))
	}
	var lacks []string
	for _, name := range suspects {
		if name == "nodes" && c.namespace != "" { // they are in no namespace
			continue
		}
		if len(rec[name]) == 0 && !slices.Contains(c.denied, name) {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) > 0 {
		fmt.Fprintf(c.err, "not recorded, so not listed: %s\n", strings.Join(lacks, ", "))
	}
}

// suspects are resources whose changes often are the cause of others.
var suspects = []string{"configmaps", "secrets", "ingresses.networking.k8s.io", "networkpolicies.networking.k8s.io", "horizontalpodautoscalers.autoscaling",
	"resourcequotas", "nodes", "services", "deployments.apps", "statefulsets.apps", "daemonsets.apps"}

// errNothing returns the error for a history without resources that the caller may read.
func (c *client) errNothing(h *api.History) error {
	switch {
	case h.Recording.State == api.RecordingFailed:
		return fmt.Errorf("the history is not open: %s", h.Recording.Reason)
	case len(h.Denied) > 0:
		text := "you may list none of the recorded resources in all namespaces"
		if c.namespace != "" {
			text = "you may list none of the recorded resources in namespace " + c.namespace
		}
		return errors.New(text + ": " + c.rights(text))
	}
	return fmt.Errorf("nothing is recorded: %s", cmp.Or(h.Recording.Reason, "see the flag --record of watchkeeper serve"))
}
