// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// validity is long because nothing renews the certificates of a test cluster.
const validity = 10 * 365 * 24 * time.Hour

// leaf is a certificate to issue. Its name is that of its file in pki/: the component
// that presents it and, for some, the server that it is presented to.
type leaf struct {
	name   string
	ca     string
	user   string   // common name: the Kubernetes user
	groups []string // organizations: the Kubernetes groups
	server bool     // also valid for serving on loopback
}

// kubeletClient is the API server as a client of kubelets.
const kubeletClient = "kube-apiserver-kubelet-client"

// leaves are all certificates of a cluster. The servers share one certificate, since
// they share one address.
var leaves = []leaf{
	{name: "server", ca: "ca", user: "localcluster", server: true},
	{name: "etcd", ca: "etcd-ca", user: "etcd", server: true}, // also for clients, as peers are
	{name: "apiserver-etcd", ca: "etcd-ca", user: "kube-apiserver"},
	{name: "apiserver-kubelet", ca: "ca", user: kubeletClient, groups: []string{"system:masters"}},
	{name: "front-proxy", ca: "front-proxy-ca", user: "front-proxy-client"},
	{name: "admin", ca: "ca", user: "kubernetes-admin", groups: []string{"system:masters"}},
	{name: controllerManager, ca: "ca", user: "system:kube-controller-manager"},
	{name: kubeScheduler, ca: "ca", user: "system:kube-scheduler"},
	// No bootstrap role allows kwok to act for every node.
	{name: kwokController, ca: "ca", user: "kwok", groups: []string{"system:masters"}},
}

// makeCerts issues the certificates unless pki/ has them, so that kubeconfigs and
// service account tokens survive a restart. The CAs of clients, of etcd and of the front
// proxy are separate, so that a client's certificate gives no access to etcd and no
// right to assert another user's identity.
func (c cluster) makeCerts() error {
	_, err := os.Stat(c.pki("sa.key")) // written last
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	type authority struct {
		cert *x509.Certificate
		key  *ecdsa.PrivateKey
	}
	authorities := map[string]authority{}
	for _, name := range []string{"ca", "etcd-ca", "front-proxy-ca"} {
		template := certTemplate("localcluster-"+name, nil)
		template.IsCA = true
		template.BasicConstraintsValid = true
		template.KeyUsage |= x509.KeyUsageCertSign
		cert, key, err := c.issue(name, template, nil, nil)
		if err != nil {
			return err
		}
		authorities[name] = authority{cert, key}
	}
	for _, l := range leaves {
		template := certTemplate(l.user, l.groups)
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		if l.server {
			template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
			template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)}
			template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
		}
		ca := authorities[l.ca]
		if _, _, err := c.issue(l.name, template, ca.cert, ca.key); err != nil {
			return err
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return writeKey(c.pki("sa.key"), key)
}

func certTemplate(user string, groups []string) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: user, Organization: groups},
		NotBefore: time.Now().Add(-time.Hour), // the clock may be set back
		NotAfter:  time.Now().Add(validity),
		KeyUsage:  x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
}

// issue creates a key and signs template with the parent's key, or with the new key if
// parent is nil. It writes NAME.crt and NAME.key.
func (c cluster) issue(name string, template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, nil, err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(c.pki(name+".crt"), block, 0o600); err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return cert, key, writeKey(c.pki(name+".key"), key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// writeKubeconfigs writes the kubeconfigs of the administrator and of the components
// that are clients of the API server.
func (c cluster) writeKubeconfigs(server string) error {
	for path, name := range map[string]string{
		c.kubeconfig():                           "admin",
		c.pki(controllerManager + ".kubeconfig"): controllerManager,
		c.pki(kubeScheduler + ".kubeconfig"):     kubeScheduler,
		c.pki(kwokController + ".kubeconfig"):    kwokController,
	} {
		if err := c.writeKubeconfig(path, name, server); err != nil {
			return err
		}
	}
	return nil
}

func (c cluster) writeKubeconfig(path, name, server string) error {
	ca, err := os.ReadFile(c.pki("ca.crt"))
	if err != nil {
		return err
	}
	cert, err := os.ReadFile(c.pki(name + ".crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(c.pki(name + ".key"))
	if err != nil {
		return err
	}
	return saveKubeconfig(path, clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca},
		name, clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}, "")
}

// saveKubeconfig writes a kubeconfig with one context, for a named user. An empty namespace
// is the default one.
func saveKubeconfig(path string, server clientcmdapi.Cluster, name string, user clientcmdapi.AuthInfo, namespace string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["localcluster"] = &server
	config.AuthInfos[name] = &user
	config.Contexts["localcluster"] = &clientcmdapi.Context{Cluster: "localcluster", AuthInfo: name, Namespace: namespace}
	config.CurrentContext = "localcluster"
	return clientcmd.WriteToFile(*config, path) // creates it 0600
}

// tlsConfig returns a configuration that trusts the named CA, as that of servers and of
// clients, and presents the named certificate.
func (c cluster) tlsConfig(ca, name string) (*tls.Config, error) {
	pemCA, err := os.ReadFile(c.pki(ca + ".crt"))
	if err != nil {
		return nil, err
	}
	cert, err := tls.LoadX509KeyPair(c.pki(name+".crt"), c.pki(name+".key"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pemCA)
	return &tls.Config{RootCAs: pool, ClientCAs: pool, Certificates: []tls.Certificate{cert}}, nil
}

// healthClient returns an HTTP client for health checks that trusts the named CA and
// presents the named certificate.
func (c cluster) healthClient(ca, name string) (*http.Client, error) {
	config, err := c.tlsConfig(ca, name)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Timeout: 2 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig: config,
			// A check must not use a connection to an earlier process of the
			// component.
			DisableKeepAlives: true,
		},
	}, nil
}
