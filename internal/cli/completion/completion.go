// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package completion completes command lines in a shell, from the server of the command: resources,
// names, namespaces and contexts as kubectl does, and in addition fields, labels and moments.
//
// Completion is quiet: what cannot be read is not offered, and there is no error.
//
// [Command] prints the scripts with which shells ask the program, or installs them for the user,
// and for kubectl, of which the program may be a plugin.
package completion

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	utilcomp "k8s.io/kubectl/pkg/util/completion"

	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
)

// timeout bounds the requests of a completion: a person waits for it.
const timeout = 5 * time.Second

// A Server is that of a command line.
type Server struct {
	*connect.Flags
	// Connect chooses the server, once the flags are known, and returns its URL.
	Connect func(ctx context.Context) (url string, err error)
}

// Options are what a command's arguments and flags are.
type Options struct {
	// Objects is set if the arguments are resources and names, as those of kubectl get.
	Objects bool
	// File is set to the ending of a file's name if the first argument is one, and the others
	// are resources.
	File string
	// Moments are flags with a moment. Argument is set if the first argument is one.
	Moments  []string
	Argument bool
	// Formats are the words of --output; nil if it is something else.
	Formats []string
}

// A function completes a word, after the arguments before it.
type function = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective)

// Add adds the completion of a command's arguments, and of those flags that it has.
func Add(cmd *cobra.Command, server Server, o Options) {
	c := &completer{server, cmdutil.NewFactory(server.Flags)}
	switch {
	case o.Argument:
		cmd.ValidArgsFunction = c.connected(c.firstMoment)
	case o.File != "":
		types := c.connected(utilcomp.ResourceTypeAndNameCompletionFunc(c.factory))
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []string{o.File}, cobra.ShellCompDirectiveFilterFileExt
			}
			return types(cmd, nil, word)
		}
	case o.Objects:
		cmd.ValidArgsFunction = c.connected(utilcomp.ResourceTypeAndNameCompletionFunc(c.factory))
	}
	flags := map[string]function{
		"namespace":     c.connected(c.namespaces),
		"context":       c.listed(utilcomp.ListContextsInConfig),
		"cluster":       c.listed(utilcomp.ListClustersInConfig),
		"user":          c.listed(utilcomp.ListUsersInConfig),
		"sort-by":       c.connected(c.sortKeys),
		"label-columns": c.connected(c.labelKeys),
		"selector":      c.connected(c.selectors),
		"color":         cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp),
	}
	for _, name := range o.Moments {
		flags[name] = c.connected(c.moments)
	}
	if o.Formats != nil {
		flags["output"] = cobra.FixedCompletions(o.Formats, cobra.ShellCompDirectiveNoFileComp)
	}
	for name, f := range flags {
		if cmd.Flags().Lookup(name) == nil {
			continue
		}
		if err := cmd.RegisterFlagCompletionFunc(name, f); err != nil {
			panic(err) // it was registered before
		}
	}
}

// A completer completes the words of one command.
type completer struct {
	server  Server
	factory cmdutil.Factory
}

// connected chooses the server before a word is completed.
func (c *completer) connected(f function) function {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		cmd.SetContext(ctx)
		utilcomp.SetFactoryForCompletion(c.factory)
		if _, err := c.server.Connect(ctx); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		words, directive := f(cmd, args, word)
		return slices.DeleteFunc(words, unprintable), directive
	}
}

// unprintable reports whether a word has something that could control the terminal. An API
// server has no such names.
func unprintable(word string) bool {
	return strings.ContainsFunc(word, func(r rune) bool {
		return r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
	})
}

// listed completes with a list of kubectl's.
func (c *completer) listed(list func(string) []string) function {
	return func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		utilcomp.SetFactoryForCompletion(c.factory)
		return list(word), cobra.ShellCompDirectiveNoFileComp
	}
}

func (c *completer) namespaces(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	return utilcomp.CompGetResource(c.factory, "namespace", word), cobra.ShellCompDirectiveNoFileComp
}

// starting returns the words that begin with one.
func starting(words []string, begin string) (some []string) {
	for _, word := range words {
		if strings.HasPrefix(word, begin) {
			some = append(some, word)
		}
	}
	return some
}

// cutLast splits a list at its last comma; head has the comma.
func cutLast(list string) (head, last string) {
	i := strings.LastIndex(list, ",") + 1
	return list[:i], list[i:]
}
