// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/audit"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// Header is the header with the audit ID, in a request and its response.
const Header = "Audit-Id"

// maxIDLength is the maximum length of an audit ID that a client gives. kube-apiserver
// has none but that of all headers, 1 MB, and would have it in each event.
const maxIDLength = 1024

// Identify gives a request its audit ID, which is that of its header Audit-ID, or a new one.
// The ID is set in the header of the response. It is set in the header of the
// request as well, so that it is forwarded: the API server's events then have the same ID.
// The context of the result collects annotations of authenticators.
func (a *Auditor) Identify(w http.ResponseWriter, r *http.Request) *http.Request {
	if a == nil {
		return r
	}
	one := r.Header[Header]
	if len(one) != 1 || !validID(one[0]) {
		one = []string{r.Header.Get(Header)}
		if !validID(one[0]) {
			one[0] = uuid.NewString()
		}
		r.Header[Header] = one
	}
	id := one[0]
	w.Header()[Header] = one
	ctx := audit.WithAuditContext(apirequest.WithReceivedTimestamp(r.Context(), time.Now()))
	audit.WithAuditID(ctx, types.UID(id))
	return r.WithContext(ctx)
}

// IdentifyPart is Identify for a request that is a part of another, such as a watch of a
// multiwatch: it has its own event, under the same ID. The header of r, which is that
// of other parts too, is not changed.
func (a *Auditor) IdentifyPart(w http.ResponseWriter, r *http.Request) *http.Request {
	if a == nil {
		return r
	}
	return a.Identify(w, r.WithContext(withoutEvent{r.Context()}))
}

// withoutEvent is a context without the event of its parent.
type withoutEvent struct{ context.Context }

func (c withoutEvent) Value(key any) any {
	v := c.Context.Value(key)
	if _, ok := v.(*audit.AuditContext); ok {
		return nil
	}
	return v
}

// ID returns the audit ID of a request, "" if auditing is off. A proxy sets it in what it
// forwards, even if the request's header Connection names Audit-ID, and removes the
// header from the answer, which has the same one already.
func ID(ctx context.Context) string {
	id, _ := audit.AuditIDFrom(ctx)
	return string(id)
}

// validID reports whether a client's ID is used. Other bytes than ASCII would not be the
// same in the log, which is UTF-8, and in the header.
func validID(id string) bool {
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			return false
		}
	}
	return 0 < len(id) && len(id) <= maxIDLength
}
