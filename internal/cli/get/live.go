// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/describe"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable"
)

// isLive reports whether the command shows tables that update in place: it watches, for a
// person, and prints a table.
func (c *command) isLive(cmd *cobra.Command) bool {
	f := cmd.Flags()
	flag := func(name string) string { return f.Lookup(name).Value.String() }
	for name, value := range map[string]string{
		"watch": "true", "watch-only": "false", "output-watch-events": "false", "server-print": "true", "raw": "",
		"filename": "[]", "kustomize": "", "subresource": "", "template": "",
	} {
		if flag(name) != value {
			return false
		}
	}
	if o := flag("output"); o != "" && o != "wide" {
		return false
	}
	return isTerminal(c.In) && isTerminal(c.Out)
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// live shows tables that update in place until the user quits.
func (c *command) live(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	namespace, _, err := c.factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("speed") && c.speed == 0 {
		return errors.New("--speed 0 prints all changes at once, which a table does not show: use a speed above 0, or a pipe such as '| cat'")
	}
	o := livetable.Options{Plain: c.plain, At: c.at, Speed: c.speed}
	o.In, _ = c.In.(*os.File)
	o.Out, _ = c.Out.(*os.File)
	f := cmd.Flags()
	o.Wide = f.Lookup("output").Value.String() == "wide"
	o.AllNamespaces = cmdutil.GetFlagBool(cmd, "all-namespaces")
	o.NoHeaders = cmdutil.GetFlagBool(cmd, "no-headers")
	o.ShowLabels = cmdutil.GetFlagBool(cmd, "show-labels")
	o.LabelColumns = cmdutil.GetFlagStringSlice(cmd, "label-columns")
	o.SortBy = cmdutil.GetFlagString(cmd, "sort-by")
	if err := c.check(cmd, namespace, args); err != nil {
		return err
	}
	targets, err := c.targets(args)
	if err != nil {
		return err
	}
	c.flags.Err = nil // from now on, the tables say it
	config, err := c.factory.ToRESTConfig()
	if err != nil {
		return err
	}
	base, err := connect.ServerURL(config)
	if err != nil {
		return err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return err
	}
	prefixed := len(targets) > 1 || cmdutil.GetFlagBool(cmd, "show-kind")
	for _, t := range targets {
		w := livetable.Watch{
			Title: t.mapping.Resource.GroupResource().String(), Base: base, Transport: transport,
			Resource:   kube.Resource{Group: t.mapping.Resource.Group, Version: t.mapping.Resource.Version, Name: t.mapping.Resource.Resource},
			Namespaced: t.mapping.Scope.Name() == meta.RESTScopeNameNamespace, Names: t.names,
			LabelSelector: cmdutil.GetFlagString(cmd, "selector"), FieldSelector: cmdutil.GetFlagString(cmd, "field-selector"),
		}
		if w.Namespaced && !o.AllNamespaces {
			w.Namespace = namespace
		}
		if prefixed {
			w.NamePrefix = strings.ToLower(t.mapping.GroupVersionKind.GroupKind().String()) + "/"
		}
		o.Watches = append(o.Watches, w)
	}
	details := &livetable.ObjectDetails{Describe: func(_ context.Context, object livetable.Object) (string, error) {
		return c.describe(targets, object)
	}}
	if connect.HasHistory(ctx, &http.Client{Transport: transport}, base) {
		details.Gateway = &livetable.Gateway{Base: base, Transport: transport}
		o.History = details.Gateway
	}
	o.Details = details
	return livetable.Run(ctx, o)
}

// describe returns what kubectl describe prints of an object, now or in the past.
func (c *command) describe(targets []target, o livetable.Object) (string, error) {
	i := slices.IndexFunc(targets, func(t target) bool { return t.mapping.Resource.GroupResource().String() == o.Watch.Title })
	if i < 0 {
		return "", fmt.Errorf("%s is none of the resources", o.Watch.Title)
	}
	describer, err := describe.Describer(&pastGetter{c.flags, o.At}, targets[i].mapping)
	if err != nil {
		return "", err
	}
	return describer.Describe(o.Namespace, o.Name, describe.DescriberSettings{ShowEvents: true, ChunkSize: cmdutil.DefaultChunkSize})
}

// A pastGetter leads to a moment of the past, or to now with "".
type pastGetter struct {
	*connect.Flags
	at string
}

// ToRESTConfig implements genericclioptions.RESTClientGetter.
func (g *pastGetter) ToRESTConfig() (*rest.Config, error) {
	config, err := g.Flags.ToRESTConfig()
	if err == nil && g.at != "" {
		config = rest.CopyConfig(config)
		config.Host = strings.TrimSuffix(config.Host, "/") + "/at/" + g.at
	}
	return config, err
}
