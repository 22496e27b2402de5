// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"io"
	"net/http"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
	"github.com/watchkeeper/watchkeeper/internal/cli/get"
	"github.com/watchkeeper/watchkeeper/internal/cli/refusal"
	"github.com/watchkeeper/watchkeeper/internal/cli/sheetcmd"
	"github.com/watchkeeper/watchkeeper/internal/cli/termtext"
)

func newGet(s streams) *cobra.Command {
	return get.New(get.Options{
		IOStreams: genericiooptions.IOStreams{In: s.in, Out: s.out, ErrOut: s.err},
		UserAgent: userAgent(),
		Guard:     func(w io.Writer) io.Writer { return termtext.NewWriter(w, false) },
		Moment: func(ctx context.Context, flags *connect.Flags, text string) (string, error) {
			c := &client{streams: s, flags: flags}
			if err := c.prepareScope(ctx, false); err != nil {
				return "", err
			}
			moment, err := c.pastPath(ctx, "--at", text)
			flags.Wrap = func(base http.RoundTripper) http.RoundTripper {
				return &refusal.Transport{Base: base, Stamp: (&zone{}).stamp}
			}
			return moment, err
		},
	})
}

func newSheet(s streams) *cobra.Command {
	return sheetcmd.New(sheetcmd.Options{In: s.in, Out: termtext.NewWriter(s.out, false), Err: s.err, UserAgent: userAgent()})
}
