// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/watchkeeper/watchkeeper/internal/cli/values"
	"github.com/watchkeeper/watchkeeper/internal/record/recorder"
	"github.com/watchkeeper/watchkeeper/internal/serve/server"
)

const (
	defaultHistoryMaxAge   = 7 * values.Day
	defaultHistoryMaxBytes = "10Gi"
	// minHistory is more than the size of an empty history.
	minHistory = 64 << 20
)

// recordOptions are the flags of serve for recording.
type recordOptions struct {
	dir              string
	include, exclude []string
	secrets          bool
	maxAge           values.Age
	maxBytes         values.Bytes
}

func (o *recordOptions) addFlags(f *pflag.FlagSet) {
	o.maxAge = values.Age(defaultHistoryMaxAge)
	o.maxBytes.Quantity = resource.MustParse(defaultHistoryMaxBytes)
	f.StringVar(&o.dir, "data-dir", values.DefaultStateDir, "directory of the history, with one subdirectory per cluster; the default is below $XDG_STATE_HOME if that is set; empty disables recording")
	f.StringSliceVar(&o.include, "record", []string{"core"}, "resources to record, by any of kubectl's names or by pattern: pods, deploy, deployments.apps, apps/*, *.example.com, core (workloads, Nodes, Services, Events), or * (all except Secrets and Leases)")
	f.StringSliceVar(&o.exclude, "record-exclude", nil, "resources not to record")
	f.BoolVar(&o.secrets, "record-secrets", false, "record Secrets; they can then be read from the disk")
	f.Var(&o.maxAge, "history-max-age", "how long to keep the history, such as 7d or 36h; 0 means as long as --history-max-bytes allows")
	f.Var(&o.maxBytes, "history-max-bytes", "maximum size of a cluster's history on disk, such as 10Gi; 0 means no limit")
}

// options returns the server's options.
func (o *recordOptions) options(cmd *cobra.Command) (s server.RecordOptions, err error) {
	if s.Dir = o.dir; !cmd.Flags().Changed("data-dir") {
		if s.Dir, err = values.StateDir(); err != nil {
			s.Missing = fmt.Errorf("%w for the history: use --data-dir", err)
			return s, nil
		}
	}
	if s.Dir == "" {
		for _, flag := range []string{"record", "record-exclude", "record-secrets"} {
			if cmd.Flags().Changed(flag) {
				return s, fmt.Errorf("--%s selects what to record, but an empty --data-dir disables recording: leave one out", flag)
			}
		}
		for _, flag := range []string{"history-max-age", "history-max-bytes"} {
			if cmd.Flags().Changed(flag) {
				return s, fmt.Errorf("--%s limits what is recorded, but an empty --data-dir disables recording: leave one out", flag)
			}
		}
		return s, nil
	}
	if s.Dir, err = filepath.Abs(s.Dir); err != nil {
		return s, fmt.Errorf("--data-dir: %w", err)
	}
	if s.Select, err = recorder.Select(o.include, o.exclude, o.secrets); err != nil {
		return s, fmt.Errorf("--record: %w", err)
	}
	if s.Select.Empty() {
		return s, recorder.ErrNothing
	}
	s.MaxAge, s.MaxBytes = time.Duration(o.maxAge), o.maxBytes.Value()
	if b := s.MaxBytes; b < 0 || b > 0 && b < minHistory {
		return s, fmt.Errorf("--history-max-bytes %s is too small: use 64Mi or more, such as %s", o.maxBytes.String(), defaultHistoryMaxBytes)
	}
	return s, nil
}
