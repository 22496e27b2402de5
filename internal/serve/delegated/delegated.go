// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package delegated asks the API server who makes a request and what that user may do, with
// the libraries by which extension API servers do so (delegated authentication and
// authorization). Its imports are most of an API server, so that only what starts shared mode
// imports it: the rest knows its results, see internal/cluster/access.
package delegated

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// reviewBackoff is that of the API server's delegating authenticator, with fewer steps,
// since a client waits.
var reviewBackoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 2}

// New returns the access control of an API server, which has to be run. Its metrics are
// registered in reg, unless that is nil.
func New(up *upstream.Server, opts access.SharedOptions, b *upstream.Background, reg prometheus.Registerer, log *slog.Logger) (*access.Shared, error) {
	config, transport := forReviews(up)
	timed, err := newTimedTransport(transport.Transport, reg)
	if err != nil {
		return nil, fmt.Errorf("metrics of reviews: %w", err)
	}
	transport.Transport = timed
	client, err := kubernetes.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("client for reviews: %w", err)
	}
	r := access.Reviews{Tokens: tokenReviews{client.AuthenticationV1().TokenReviews(), opts.Audiences}}
	if r.Certificates, err = newCertificates(client); err != nil {
		return nil, fmt.Errorf("authentication: %w", err)
	}
	// The factory's cache cannot forget an answer that a later review contradicts, and asks
	// equal questions once each.
	r.Rights, err = authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(), WebhookRetryBackoff: &reviewBackoff,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("authorization: %w", err)
	}
	return access.NewShared(up, r, opts, b, log), nil
}

// forReviews returns how a client for reviews is made. In protobuf, a review takes the API
// server less CPU than in JSON.
func forReviews(up *upstream.Server) (*rest.Config, *http.Client) {
	config, client := up.Client()
	config.ContentType = runtime.ContentTypeProtobuf
	return config, client
}
