// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
)

// infoOf is kube-apiserver's factory.
var infoOf = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// AttributesOf returns what an authorizer decides about a request of a user, as the API
// server does, with the selectors of a LIST or WATCH. The caller is nil if it is not known.
func AttributesOf(r *http.Request, caller user.Info) (*authorizer.AttributesRecord, error) {
	kept, selectors := narrowing(r.URL.RawQuery)
	u := *r.URL
	u.RawQuery = kept
	info, err := infoOf.NewRequestInfo(&http.Request{Method: r.Method, URL: &u}) // it reads no more
	if err != nil {
		return nil, err
	}
	a := &authorizer.AttributesRecord{
		User: caller, ResourceRequest: info.IsResourceRequest, Path: info.Path, Verb: info.Verb,
		APIGroup: info.APIGroup, APIVersion: info.APIVersion, Resource: info.Resource, Subresource: info.Subresource,
		Namespace: info.Namespace, Name: info.Name,
	}
	if info.FieldSelector != "" {
		a.FieldSelectorRequirements = selectors.field.Requirements()
	}
	if info.LabelSelector != "" {
		a.LabelSelectorRequirements, _ = selectors.label.Requirements()
	}
	switch info.Verb {
	case "list", "watch", "deletecollection":
		a.FieldSelectorParsingErr, a.LabelSelectorParsingErr = selectors.fieldErr, selectors.labelErr
	}
	return a, nil
}

// selectors are those of a query, or why they cannot be parsed.
type selectors struct {
	field              fields.Selector
	label              labels.Selector
	fieldErr, labelErr error
}

// narrowing returns the parts of a query that NewRequestInfo reads, without selectors that
// cannot be parsed, which do not narrow the question. It would log a query that it cannot
// read, with a token that a client has put there.
func narrowing(query string) (kept string, s selectors) {
	if !mayNarrow(query) {
		return "", s
	}
	all, _ := url.ParseQuery(query)
	parts := url.Values{}
	if v := all["watch"]; len(v) > 0 {
		parts["watch"] = v
	}
	if v := all["fieldSelector"]; len(v) > 0 {
		if s.field, s.fieldErr = fields.ParseSelector(v[0]); s.fieldErr == nil {
			parts["fieldSelector"] = v[:1]
		}
	}
	if v := all["labelSelector"]; len(v) > 0 {
		if s.label, s.labelErr = labels.Parse(v[0]); s.labelErr == nil {
			parts["labelSelector"] = v[:1]
		}
	}
	return parts.Encode(), s
}

// mayNarrow reports whether a query may have a part that NewRequestInfo reads. Most have
// none, and to parse them costs more than the rest of the question.
func mayNarrow(query string) bool {
	return strings.Contains(query, "watch") || strings.Contains(query, "Selector") || strings.Contains(query, "%")
}

// namespaceOf returns the namespace of a target as an authorizer sees it: that of a
// Namespace object is its name.
func namespaceOf(t request.Target) string {
	if t.Resource.Group == "" && t.Resource.Name == "namespaces" && t.Namespace == "" {
		return t.Name
	}
	return t.Namespace
}

// Agrees reports whether the attributes are about the objects that the gateway would
// show for a target: the two are read from a request by different code.
func Agrees(a *authorizer.AttributesRecord, t request.Target) bool {
	return a.ResourceRequest && a.Verb == string(t.Verb) && a.Subresource == "" && a.Namespace == namespaceOf(t) &&
		a.APIGroup == t.Resource.Group && a.APIVersion == t.Resource.Version && a.Resource == t.Resource.Name &&
		(a.Name == t.Name || t.Name == "")
}

// TargetAttributes returns the attributes of a read of a target.
func TargetAttributes(u user.Info, t request.Target) *authorizer.AttributesRecord {
	return &authorizer.AttributesRecord{
		User: u, ResourceRequest: true, Verb: string(t.Verb), APIGroup: t.Resource.Group, APIVersion: t.Resource.Version,
		Resource: t.Resource.Name, Namespace: namespaceOf(t), Name: t.Name, Path: t.Resource.ListPath(t.Namespace),
	}
}

// PathAttributes returns the attributes of a GET of a path that is not a resource's.
func PathAttributes(u user.Info, path string) *authorizer.AttributesRecord {
	return &authorizer.AttributesRecord{User: u, Verb: "get", Path: path}
}

// questionKey returns a text that is equal only for attributes about which an authorizer
// that knows the user decides alike.
func questionKey(a *authorizer.AttributesRecord) string {
	var b keyBuilder
	if b.part(a.Verb); !a.ResourceRequest {
		b.part(a.Path)
		return b.String()
	}
	for _, s := range []string{"", a.APIGroup, a.APIVersion, a.Resource, a.Subresource, a.Namespace, a.Name} {
		b.part(s)
	}
	for _, f := range a.FieldSelectorRequirements {
		b.WriteByte('f')
		b.part(string(f.Operator))
		b.part(f.Field)
		b.part(f.Value)
	}
	for _, l := range a.LabelSelectorRequirements {
		b.WriteByte('l')
		b.part(l.String())
	}
	return b.String()
}
