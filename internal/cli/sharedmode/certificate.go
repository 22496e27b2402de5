// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sharedmode

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchkeeper/watchkeeper/internal/cli/values"
	"github.com/watchkeeper/watchkeeper/internal/serve/server"
)

const (
	certDir        = "certs" // in the user's state directory
	defaultCertDir = values.DefaultStateDir + "/" + certDir
)

func (o *Flags) addCertificateFlags(f *pflag.FlagSet, s *server.CertOptions) {
	f.StringVar(&s.Dir, "cert-dir", defaultCertDir, "directory of the self-signed certificate that --shared makes without --tls-cert-file: tls.crt, tls.key, and ca.crt for the clients; made when missing, renewed 30 days before it expires, with a new ca.crt; the default is below $XDG_STATE_HOME if that is set")
	f.StringSliceVar(&s.Names, "tls-san", nil, "DNS name or IP address that the self-signed certificate is also for, such as watchkeeper.monitoring.svc; repeatable; localhost, the host name and an IP address in --address are always included")
	f.StringVar(&o.certSecret, "cert-secret", "", "NAMESPACE/NAME of a Secret for the self-signed certificate, instead of --cert-dir, that several replicas share; made when missing or empty, its certificate renewed 30 days before it expires, with the same CA")
	f.StringVar(&o.caConfigMap, "ca-configmap", "", "NAMESPACE/NAME of a ConfigMap in which the gateway keeps the CA of its certificate, as ca.crt, for clients in the cluster")
	f.StringVar(&s.CAFile, "tls-ca-file", "", "CA of --tls-cert-file, for --ca-configmap")
}

// certificate checks the flags of the certificate, and sets its options.
func (o *Flags) certificate(cmd *cobra.Command, s *server.CertOptions) (err error) {
	changed := cmd.Flags().Changed
	own := s.File != "" || s.KeyFile != ""
	switch {
	case own && (changed("cert-dir") || changed("tls-san") || changed("cert-secret")):
		for _, flag := range []string{"cert-dir", "tls-san", "cert-secret"} {
			if changed(flag) {
				return fmt.Errorf("--%s is for the self-signed certificate, and --tls-cert-file names another: leave one out", flag)
			}
		}
	case changed("cert-secret") && changed("cert-dir"):
		return errors.New("--cert-secret and --cert-dir cannot be combined: leave one out")
	case changed("tls-ca-file") && (!own || !changed("ca-configmap")):
		return errors.New("--tls-ca-file is the CA of --tls-cert-file, for --ca-configmap: add both, or leave it out")
	case own && changed("ca-configmap") && s.CAFile == "":
		return errors.New("--ca-configmap is for the CA of --tls-cert-file: add --tls-ca-file")
	}
	if changed("cert-secret") {
		if s.Secret, err = namespacedName("cert-secret", o.certSecret); err != nil {
			return err
		}
	}
	if changed("ca-configmap") {
		if s.CAConfigMap, err = namespacedName("ca-configmap", o.caConfigMap); err != nil {
			return err
		}
	}
	if !own && !changed("cert-secret") && !changed("cert-dir") {
		state, err := values.StateDir()
		if err != nil {
			return fmt.Errorf("%w for the self-signed certificate: use --cert-dir, --cert-secret or --tls-cert-file", err)
		}
		s.Dir = filepath.Join(state, certDir)
	}
	return nil
}

// namespacedName returns the value of a flag.
func namespacedName(flag, value string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(value, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("--%s %q is not NAMESPACE/NAME", flag, value)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
