// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

const (
	timeoutParameter = "timeout"
	// maxTimeout is the API server's limit of a request that is no watch
	// (--request-timeout).
	maxTimeout = time.Minute
)

// IsRead reports whether a request is a GET of a path of a resource or an object.
func IsRead(r *http.Request) bool {
	_, ok := ParsePath(r.URL.Path)
	return ok && r.Method == http.MethodGet
}

// Bounded returns a LIST or GET without its parameter timeout, bounded by it as the API
// server bounds it, for a request that the API server does not get. The function has to
// be called after the answer. A watch ignores the parameter.
func Bounded(r *http.Request) (*http.Request, context.CancelFunc, error) {
	if IsWatch(r) || !mentions(r, timeoutParameter) {
		return r, func() {}, nil
	}
	query := r.URL.Query()
	if !query.Has(timeoutParameter) {
		return r, func() {}, nil
	}
	bound := maxTimeout
	if text := query.Get(timeoutParameter); text != "" {
		asked, err := time.ParseDuration(text)
		if err != nil {
			return r, nil, &status.Error{Status: invalid(timeoutParameter, text, err)}
		}
		if asked > 0 { // 0 is no limit of the client
			bound = min(bound, asked)
		}
	}
	query.Del(timeoutParameter)
	ctx, cancel := context.WithTimeout(r.Context(), bound)
	out := r.WithContext(ctx)
	u := *r.URL
	u.RawQuery = query.Encode()
	out.URL = &u
	return out, cancel, nil
}

// Invalid returns why the parameters of a read are not understood, as the API server
// answers it, for a read that the API server does not get. Where the API server says only
// what is wrong with the value, it names the parameter, too.
func Invalid(r *http.Request) *metav1.Status {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return status.BadRequest("the query cannot be read: " + err.Error())
	}
	for _, name := range []string{"export", "shardSelector"} {
		if value := query.Get(name); value != "" {
			return status.BadRequest(fmt.Sprintf("%s: Invalid value: %q: it is not supported here", name, value))
		}
	}
	var o internalversion.ListOptions
	if target, _ := ParsePath(r.URL.Path); target.Verb != Get {
		// One by one, in a fixed order: the error does not name the parameter.
		var names []string
		for name := range query {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			one := url.Values{name: query[name]}
			if err := internalscheme.ParameterCodec.DecodeParameters(one, metav1.SchemeGroupVersion, &internalversion.ListOptions{}); err != nil {
				return invalid(name, query.Get(name), err)
			}
		}
		if err := internalscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &o); err != nil {
			return status.BadRequest(err.Error())
		}
		internalversion.SetListOptionsDefaults(&o, true)
		if wrong := validation.ValidateListOptions(&o, true); len(wrong) > 0 {
			s := apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", wrong).ErrStatus
			return &s
		}
	}
	if text := query.Get("resourceVersion"); text != "" {
		rv, err := strconv.ParseUint(text, 10, 64)
		if err == nil && text != kube.FormatRV(rv) {
			err = fmt.Errorf("write it as %d", rv)
		}
		if err != nil {
			return invalid("resourceVersion", text, err)
		}
	}
	return status.BadRequest("the request is not a LIST, GET or WATCH that is understood here")
}

func invalid(name, value string, err error) *metav1.Status {
	return status.BadRequest(field.Invalid(field.NewPath(name), value, err.Error()).Error())
}
