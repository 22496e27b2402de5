// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	// gatewayTimeout bounds the requests that ask whether there is a gateway on this machine.
	gatewayTimeout = time.Second
	// serverTimeout bounds the request that asks an API server for its cluster.
	serverTimeout = 10 * time.Second
	// maxKnown is how long the cluster of an API server is remembered. A stale answer is
	// harmless: it is only compared with the cluster of a gateway that runs.
	maxKnown = 10 * time.Minute
	// maxAnswer bounds the answers that are read, in bytes.
	maxAnswer = 1 << 20

	clusterPath = "/api/v1/namespaces/kube-system"
	// gatewayPath is served by gateways only.
	gatewayPath = "/watchkeeper/v1/openapi.json"
	historyPath = "/watchkeeper/v1/history"
)

// Choose chooses the server of --server or the environment, else the gateway on this machine
// if it serves the cluster of the context, and uses it. It returns its URL, or "" for the API
// server of the context.
func (f *Flags) Choose(ctx context.Context) (string, error) {
	server, err := f.Server()
	if server == "" && err == nil {
		return f.UseLocal(ctx), nil
	}
	f.Use(server)
	return server, err
}

// UseLocal makes the gateway on this machine the server if it serves the cluster of the
// context, which it is if both have the same UID of the namespace kube-system. It returns
// the URL of the gateway, "" if it is not used. Flags with a server or with credentials of their own exclude it: a local
// gateway acts with its own. Without a kubeconfig there is nothing to compare with, and a
// gateway that runs is used.
func (f *Flags) UseLocal(ctx context.Context) (url string) {
	if *f.APIServer != "" || os.Getenv(Variable) == NoGateway || f.ownCredentials() {
		return ""
	}
	gateway, err := gatewayCluster(ctx, f.local)
	if err != nil {
		return ""
	}
	if f.configured() {
		config, err := f.ToRESTConfig()
		if err != nil {
			return "" // kubectl reports it
		}
		if uid, err := f.contextCluster(ctx, config); err != nil || uid != gateway {
			return ""
		}
	}
	f.Use(f.local)
	// kubectl's cache of discovery is keyed by the address, which is that of many clusters.
	*f.CacheDir = filepath.Join(*f.CacheDir, "watchkeeper", gateway)
	return f.local
}

// gatewayCluster returns the UID of the cluster that a gateway serves.
func gatewayCluster(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, gatewayTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	if _, err := fetch(ctx, client, url+gatewayPath); err != nil {
		return "", err
	}
	return uidAt(ctx, client, url+clusterPath+"?resourceVersion=0") // from the cache
}

// contextCluster returns the UID of the cluster of an API server. It remembers it in a file,
// so that most commands ask only the gateway, also while the API server does not answer.
func (f *Flags) contextCluster(ctx context.Context, config *rest.Config) (string, error) {
	key := sha256.Sum256([]byte(strings.Join([]string{config.Host, config.APIPath, config.CAFile, string(config.CAData), config.ServerName}, "\n")))
	file := filepath.Join(*f.CacheDir, "watchkeeper", "clusters", hex.EncodeToString(key[:]))
	known, err := os.ReadFile(file)
	if info, statErr := os.Stat(file); err == nil && statErr == nil && time.Since(info.ModTime()).Abs() < maxKnown {
		return string(known), nil
	}
	client, clientErr := rest.HTTPClientFor(config)
	if clientErr != nil {
		return "", clientErr
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	server, err := ServerURL(config)
	if err != nil {
		return "", err
	}
	uid, err := uidAt(ctx, client, server.String()+clusterPath)
	var refused *refusedError
	switch {
	case err == nil:
		remember(file, uid)
	case len(known) > 0 && !errors.As(err, &refused): // it does not answer
		return string(known), nil
	}
	return uid, err
}

// remember writes a file of the cache. The cache is optional: a failure is ignored.
func remember(file, text string) {
	if os.MkdirAll(filepath.Dir(file), 0o750) != nil {
		return
	}
	if w, err := os.CreateTemp(filepath.Dir(file), ".new-"); err == nil {
		_, err = w.WriteString(text)
		if errors.Join(err, w.Close()) != nil || os.Rename(w.Name(), file) != nil {
			os.Remove(w.Name()) //nolint:errcheck // as above
		}
	}
}

// A refusedError is an answer other than 200.
type refusedError struct{ url, status string }

func (e *refusedError) Error() string { return fmt.Sprintf("%s answered %s", e.url, e.status) }

// uidAt returns the UID of the object at a URL.
func uidAt(ctx context.Context, client *http.Client, url string) (string, error) {
	text, err := fetch(ctx, client, url)
	if err != nil {
		return "", err
	}
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(text, &o); err != nil || o.UID == "" || strings.ContainsAny(string(o.UID), `/\.`) {
		return "", fmt.Errorf("%s: the answer is no namespace", url)
	}
	return string(o.UID), nil
}

// fetch returns the body of an answer.
func fetch(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, &refusedError{url, resp.Status}
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
}
