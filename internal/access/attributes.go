// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/watchkeeper/watchkeeper/internal/request"
)

// infoOf is kube-apiserver's factory.
var infoOf = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// AttributesOf returns what an authorizer decides about a request, as the API server
// does, with the selectors of a LIST or WATCH.
func AttributesOf(r *http.Request, c *Caller) (*authorizer.AttributesRecord, error) {
	return AttributesFor(r, c.User)
}

// AttributesFor is [AttributesOf] for any user; nil for none.
func AttributesFor(r *http.Request, u user.Info) (*authorizer.AttributesRecord, error) {
	asked, fieldErr, labelErr := withSelectors(r)
	info, err := infoOf.NewRequestInfo(asked)
	if err != nil {
		return nil, err
	}
	a := &authorizer.AttributesRecord{
		User: u, ResourceRequest: info.IsResourceRequest, Path: info.Path, Verb: info.Verb,
		APIGroup: info.APIGroup, APIVersion: info.APIVersion, Resource: info.Resource, Subresource: info.Subresource,
		Namespace: info.Namespace, Name: info.Name,
	}
	if selectsVerb(info.Verb) {
		a.FieldSelectorParsingErr, a.LabelSelectorParsingErr = fieldErr, labelErr
	}
	if selector, err := fields.ParseSelector(info.FieldSelector); err == nil {
		if all := selector.Requirements(); len(all) > 0 {
			a.FieldSelectorRequirements = all
		}
	}
	if selector, err := labels.Parse(info.LabelSelector); err == nil {
		if all, _ := selector.Requirements(); len(all) > 0 {
			a.LabelSelectorRequirements = all
		}
	}
	return a, nil
}

func selectsVerb(verb string) bool {
	return verb == "list" || verb == "watch" || verb == "deletecollection"
}

// withSelectors returns a request with the parts of the query that NewRequestInfo reads,
// without selectors that cannot be parsed, which do not narrow the question. It would log
// a query that it cannot read, with a token that a client has put there.
func withSelectors(r *http.Request) (asked *http.Request, fieldErr, labelErr error) {
	asked = r.WithContext(r.Context())
	u := *r.URL
	asked.URL, u.RawQuery = &u, ""
	if !mayNarrow(r.URL.RawQuery) {
		return asked, nil, nil
	}
	all, kept := r.URL.Query(), url.Values{}
	if v := all["watch"]; len(v) > 0 {
		kept["watch"] = v
	}
	if v := all["fieldSelector"]; len(v) > 0 {
		if _, fieldErr = fields.ParseSelector(v[0]); fieldErr == nil {
			kept["fieldSelector"] = v[:1]
		}
	}
	if v := all["labelSelector"]; len(v) > 0 {
		if _, labelErr = labels.Parse(v[0]); labelErr == nil {
			kept["labelSelector"] = v[:1]
		}
	}
	u.RawQuery = kept.Encode()
	return asked, fieldErr, labelErr
}

// mayNarrow reports whether a query may have a part that NewRequestInfo reads. Most have
// none, and to parse them costs more than the rest of the question.
func mayNarrow(query string) bool {
	return strings.Contains(query, "watch") || strings.Contains(query, "Selector") || strings.Contains(query, "%")
}

// Agrees reports whether the attributes are about the objects that the gateway would
// show for a target: the two are read from a request by different code.
func Agrees(a *authorizer.AttributesRecord, t request.Target) bool {
	namespace := t.Namespace
	if t.Resource.Group == "" && t.Resource.Name == "namespaces" && t.Namespace == "" {
		namespace = t.Name // the API server sets the same for a Namespace object
	}
	return a.ResourceRequest && a.Verb == string(t.Verb) && a.Subresource == "" && a.Namespace == namespace &&
		a.APIGroup == t.Resource.Group && a.APIVersion == t.Resource.Version && a.Resource == t.Resource.Name &&
		(a.Name == t.Name || t.Name == "")
}

// targetAttributes returns the attributes of a verb on a target.
func targetAttributes(c *Caller, t request.Target, verb request.Verb) *authorizer.AttributesRecord {
	a := &authorizer.AttributesRecord{
		User: c.User, ResourceRequest: true, Verb: string(verb), APIGroup: t.Resource.Group, APIVersion: t.Resource.Version,
		Resource: t.Resource.Name, Namespace: t.Namespace, Name: t.Name, Path: request.ListPath(t.Resource, t.Namespace),
	}
	if t.Resource.Group == "" && t.Resource.Name == "namespaces" && t.Namespace == "" {
		a.Namespace = t.Name
	}
	return a
}

// PathAttributes returns the attributes of a GET of a path that is not a resource's.
func PathAttributes(u user.Info, path string) *authorizer.AttributesRecord {
	return &authorizer.AttributesRecord{User: u, Verb: "get", Path: path}
}

// questionKey returns a text that is equal only for attributes about which an authorizer
// that knows the user decides alike.
func questionKey(a *authorizer.AttributesRecord) string {
	var b strings.Builder
	part := func(s string) {
		b.WriteString(strconv.Itoa(len(s)))
		b.WriteByte(':')
		b.WriteString(s)
	}
	if part(a.Verb); !a.ResourceRequest {
		part(a.Path)
		return b.String()
	}
	for _, s := range []string{"", a.APIGroup, a.APIVersion, a.Resource, a.Subresource, a.Namespace, a.Name} {
		part(s)
	}
	for _, f := range a.FieldSelectorRequirements {
		b.WriteByte('f')
		part(string(f.Operator))
		part(f.Field)
		part(f.Value)
	}
	for _, l := range a.LabelSelectorRequirements {
		b.WriteByte('l')
		part(l.String())
	}
	return b.String()
}
