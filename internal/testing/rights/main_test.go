// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

var (
	cluster *clustertest.Cluster
	issuer  *clustertest.Issuer
	// api is the admin's client of the API server.
	api kubernetes.Interface
	// direct is the API server.
	direct server
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if issuer, err = clustertest.StartIssuer(); err != nil {
		return 0, err
	}
	defer issuer.Close()
	dir, err := os.MkdirTemp("", "watchkeeper-rights-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	config := filepath.Join(dir, "authentication.json")
	if err := issuer.WriteConfig(config); err != nil {
		return 0, err
	}
	if cluster, err = clustertest.Start(2, "--apiserver-arg", "authentication-config="+config); err != nil {
		return 0, err
	}
	defer cluster.Close()
	if api, err = kubernetes.NewForConfig(cluster.Config); err != nil {
		return 0, err
	}
	direct = server{url: cluster.Config.Host}
	if direct.ca, err = pool(cluster.ServerCA()); err != nil {
		return 0, err
	}
	if err := prepare(context.Background()); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// pool returns the certificates as a pool.
func pool(pem []byte, err error) (*x509.CertPool, error) {
	if err != nil {
		return nil, err
	}
	all := x509.NewCertPool()
	if !all.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate")
	}
	return all, nil
}

// prepare makes the definitions, and waits until the API server serves them and accepts
// the issuer's tokens.
func prepare(ctx context.Context) error {
	for _, definition := range definitions() {
		err := api.CoreV1().RESTClient().Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
			SetHeader("Content-Type", jsonType).Body([]byte(definition)).Do(ctx).Error()
		if err != nil {
			return err
		}
	}
	for _, of := range resources {
		if of.group != widgetGroup || of.unwatched {
			continue
		}
		err := poll(ctx, of.plural, func() (bool, error) {
			err := api.CoreV1().RESTClient().Get().AbsPath(of.path("")).Do(ctx).Error()
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	token, err := issuer.Token("probe", time.Hour)
	if err != nil {
		return err
	}
	probe := &identity{name: "probe", header: http.Header{"Authorization": {"Bearer " + token}}, clients: map[string]*http.Client{}}
	defer probe.close()
	return poll(ctx, "the issuer's tokens", func() (bool, error) {
		err := probe.introduce(ctx, direct)
		return probe.user != nil, err
	})
}
