// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// A kind is how a caller says who it is.
type kind string

const (
	// tokenCaller has a token, perhaps with Impersonate-* headers.
	tokenCaller kind = "token"
	// certCaller has a client certificate, or comes through a front proxy.
	certCaller kind = "certificate"
	// certImpersonator has a client certificate and Impersonate-* headers.
	certImpersonator kind = "certificate that impersonates"
	// strangerCaller has credentials that the API server rejects.
	strangerCaller kind = "stranger"
	// nobodyCaller has no credentials.
	nobodyCaller kind = "nobody"
)

// An identity is a set of credentials.
type identity struct {
	name   string
	kind   kind
	cert   *tls.Certificate
	header http.Header
	http1  bool
	// user is who the API server says it is, nil if it rejects the credentials or the
	// impersonation, with the code rejected.
	user     *authenticationv1.UserInfo
	rejected int

	mu      sync.Mutex // guards clients
	clients map[string]*http.Client
}

// A server is one that requests are sent to.
type server struct {
	url string
	ca  *x509.CertPool
}

// client returns the identity's client of a server. Different identities never share a
// connection.
func (i *identity) client(s server) *http.Client {
	i.mu.Lock()
	defer i.mu.Unlock()
	if client := i.clients[s.url]; client != nil {
		return client
	}
	config := &tls.Config{RootCAs: s.ca}
	if i.cert != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return i.cert, nil } // even if the server does not name its CA
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: !i.http1},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       time.Minute,
	}
	i.clients[s.url] = client
	return client
}

// namesakes returns the identities with the same user name, and this one.
func (i *identity) namesakes(all []*identity) []*identity {
	if i.user == nil {
		return []*identity{i}
	}
	return slices.DeleteFunc(slices.Clone(all), func(other *identity) bool {
		return other.user == nil || other.user.Username != i.user.Username
	})
}

// close closes the connections.
func (i *identity) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, client := range i.clients {
		client.CloseIdleConnections()
	}
}

// identities returns callers of all kinds for the world, and asks the API server who they
// are.
func (w *world) identities(ctx context.Context, c *clustertest.Cluster, issuer *clustertest.Issuer, direct server) ([]*identity, error) {
	r := w.rand
	var all []*identity
	var errs []error
	add := func(name string, k kind, cert *tls.Certificate, headers ...string) {
		i := &identity{name: name, kind: k, cert: cert, header: http.Header{}, http1: chance(r, 50), clients: map[string]*http.Client{}}
		for n := 0; n < len(headers); n += 2 {
			i.header.Add(headers[n], headers[n+1])
		}
		all = append(all, i)
	}
	pair := func(cert, key []byte, err error) *tls.Certificate {
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		made, err := tls.X509KeyPair(cert, key)
		if err != nil {
			errs = append(errs, err)
		}
		return &made
	}
	accountToken := func(a account) string {
		token, err := c.Token(ctx, a.namespace, a.name, 0)
		if err != nil {
			errs = append(errs, err)
		}
		return "Bearer " + token
	}
	issuerToken := func(user string, expiration time.Duration, groups ...string) string {
		token, err := issuer.Token(user, expiration, groups...)
		if err != nil {
			errs = append(errs, err)
		}
		return "Bearer " + token
	}
	frontProxy := pair(c.FrontProxyCert())

	for _, a := range w.accounts {
		add("token of "+a.user(), tokenCaller, nil, "Authorization", accountToken(a))
	}
	for _, user := range w.users {
		groups := some(r, 2, w.groups)
		add(fmt.Sprintf("token of %s in %v", oidcUser(user), groups), tokenCaller, nil, "Authorization", issuerToken(user, time.Hour, groups...))
		groups = some(r, 2, w.groups)
		add(fmt.Sprintf("certificate of %s in %v", user, groups), certCaller, pair(c.ClientCert(user, groups...)))
	}
	for _, user := range w.users[:3] { // the same user in other groups
		groups := some(r, 2, w.groups)
		add(fmt.Sprintf("token of %s in %v", oidcUser(user), groups), tokenCaller, nil, "Authorization", issuerToken(user, time.Hour, groups...))
	}
	for range 10 { // impersonation of users, groups and ServiceAccounts
		var name, token string
		if chance(r, 60) {
			a := oneOf(r, w.accounts...)
			name, token = a.user(), accountToken(a)
		} else {
			user := oneOf(r, w.users...)
			name, token = oidcUser(user), issuerToken(user, time.Hour, some(r, 3, w.groups)...)
		}
		as := oneOf(r, w.users...)
		if chance(r, 30) {
			as = oneOf(r, w.accounts...).user()
		}
		headers := []string{"Authorization", token, "Impersonate-User", as}
		for range r.IntN(3) {
			headers = append(headers, "Impersonate-Group", oneOf(r, append(w.groups[:2:2], "system:masters")...))
		}
		if chance(r, 20) {
			headers = append(headers, "Impersonate-Extra-Scopes", "s")
		}
		if chance(r, 10) {
			headers = append(headers, "Impersonate-Uid", "u")
		}
		add(fmt.Sprintf("token of %s with %v", name, headers[2:]), tokenCaller, nil, headers...)
	}
	// Impersonation without a user, which is an error.
	a := oneOf(r, w.accounts...)
	add("token of "+a.user()+" with a group only", tokenCaller, nil, "Authorization", accountToken(a), "Impersonate-Group", w.groups[0])

	// A user who is named like a ServiceAccount, and a ServiceAccount's token next to
	// another user's certificate, which the API server looks at first.
	add("certificate of "+a.user(), certCaller, pair(c.ClientCert(a.user())))
	user := oneOf(r, w.users...)
	add("certificate of "+user+" and token of "+a.user(), certCaller, pair(c.ClientCert(user)), "Authorization", accountToken(a))
	for n := range 6 {
		user, group := w.users[n%3], oneOf(r, w.groups...)
		add("front proxy for "+user+" in "+group, certCaller, frontProxy, "X-Remote-User", user, "X-Remote-Group", group, "X-Remote-Group", "system:authenticated")
	}
	// Only a front proxy may name its user.
	add("token of "+a.user()+" with forged X-Remote headers", tokenCaller, nil, "Authorization", accountToken(a), "X-Remote-User", w.users[0], "X-Remote-Group", "system:masters")
	add("certificate of "+user+" with forged X-Remote headers", certCaller, pair(c.ClientCert(user)), "X-Remote-User", w.users[0], "X-Remote-Group", "system:masters")
	add("certificate of "+user+" that impersonates", certImpersonator, pair(c.ClientCert(user, w.groups...)), "Impersonate-User", w.users[0])

	add("invalid token", strangerCaller, nil, "Authorization", "Bearer invalid")
	add("expired token", strangerCaller, nil, "Authorization", issuerToken(user, -time.Minute))
	other, err := c.Token(ctx, a.namespace, a.name, 0, "somebody-else")
	if err != nil {
		errs = append(errs, err)
	}
	add("token for another audience", strangerCaller, nil, "Authorization", "Bearer "+other)
	add("certificate of a foreign CA", strangerCaller, pair(clustertest.ForeignCert(user, "system:masters")))
	add("forged X-Remote headers alone", nobodyCaller, nil, "X-Remote-User", "kubernetes-admin", "X-Remote-Group", "system:masters")
	add("no credentials", nobodyCaller, nil)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	for _, i := range all {
		if err := i.introduce(ctx, direct); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// introduce asks the API server who the identity is.
func (i *identity) introduce(ctx context.Context, direct server) error {
	answer, err := i.send(ctx, direct, &request{
		method: http.MethodPost, path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", accept: "application/json", contentType: "application/json",
		body: []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`),
	})
	if err != nil {
		return err
	}
	if answer.code != http.StatusCreated {
		i.rejected = answer.code
		return nil
	}
	var review authenticationv1.SelfSubjectReview
	if err := json.Unmarshal(answer.body, &review); err != nil {
		return fmt.Errorf("%s: %w", i.name, err)
	}
	i.user = &review.Status.UserInfo
	return nil
}
