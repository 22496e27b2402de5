// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// NewUpstreamFlags returns kubectl's connection flags for the API server of a gateway, without
// those that do not apply to one.
func NewUpstreamFlags() *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true)
	flags.Namespace = nil
	flags.Timeout = nil
	flags.CacheDir = nil
	flags.DisableCompression = nil
	return flags
}

// Upstream finds the API server of a gateway as kubectl does: flags, then kubeconfig,
// then the service account of the Pod. Unlike kubectl it does not fall back to
// localhost:8080, where no API server listens today.
func Upstream(flags *genericclioptions.ConfigFlags) (*rest.Config, error) {
	if path := *flags.KubeConfig; path != "" {
		if err := readable(path); err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %w: check --kubeconfig", path, err)
		}
	}
	loader := flags.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w: check --kubeconfig", err)
	}
	contexts := slices.Sorted(maps.Keys(raw.Contexts))
	current := cmp.Or(*flags.Context, raw.CurrentContext)
	if current != "" && raw.Contexts[current] == nil {
		return nil, unknownContext(current, contexts)
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w: check --kubeconfig, --context, --cluster and --user", err)
	}
	named := current != "" || *flags.ClusterName != "" || *flags.APIServer != "" || os.Getenv("KUBERNETES_MASTER") != ""
	if !named && config.Host == clientcmd.ClusterDefaults.Server {
		if len(contexts) > 0 {
			return nil, fmt.Errorf("kubeconfig has no current context: choose one of %s with --context", strings.Join(contexts, ", "))
		}
		looked := loader.ConfigAccess().GetLoadingPrecedence()
		return nil, fmt.Errorf("no kubeconfig (looked at %s) and not running in a cluster: use --kubeconfig or --server",
			strings.Join(looked, ", "))
	}
	user := *flags.AuthInfoName
	if in := raw.Contexts[current]; user == "" && in != nil {
		user = in.AuthInfo
	}
	followToken(config, loader.ConfigAccess(), &raw, user)
	return config, nil
}

// readable returns why a file cannot be read, without its name.
func readable(path string) error {
	f, err := os.Open(path)
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return errors.New("is a directory")
	}
	return nil
}

// unknownContext lists the contexts that exist.
func unknownContext(name string, known []string) error {
	if len(known) == 0 {
		return fmt.Errorf("context %q does not exist, and the kubeconfig has no contexts: check --kubeconfig", name)
	}
	return fmt.Errorf("context %q does not exist: choose one of %s with --context", name, strings.Join(known, ", "))
}
