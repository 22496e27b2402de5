// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/watchkeeper/watchkeeper/internal/recorder"
	"github.com/watchkeeper/watchkeeper/internal/server"
)

const (
	stateDir               = "watchkeeper" // below the user's state directory
	defaultDataDir         = "~/.local/state/" + stateDir
	defaultHistoryMaxAge   = 7 * day
	defaultHistoryMaxBytes = "10Gi"
	// leastHistory is more than what an empty history takes.
	leastHistory = 64 << 20

	day = 24 * time.Hour
)

// recordOptions are the flags of serve that say what is recorded.
type recordOptions struct {
	dir              string
	include, exclude []string
	secrets          bool
	maxAge           ageValue
	maxBytes         resource.QuantityValue
}

func (o *recordOptions) addFlags(f *pflag.FlagSet) {
	o.maxAge = ageValue(defaultHistoryMaxAge)
	o.maxBytes.Quantity = resource.MustParse(defaultHistoryMaxBytes)
	f.StringVar(&o.dir, "data-dir", defaultDataDir, "directory to record to, which gets one per cluster; the default is below $XDG_STATE_HOME if that is set; empty records nothing")
	f.StringSliceVar(&o.include, "record", []string{"core"}, "what to record: pods, deployments.apps, apps/*, *.example.com, core (workloads, nodes, events), or * (all but Secrets and Leases)")
	f.StringSliceVar(&o.exclude, "record-exclude", nil, "what not to record of that")
	f.BoolVar(&o.secrets, "record-secrets", false, "record Secrets; whoever may read the disk can then read them")
	f.Var(&o.maxAge, "history-max-age", "how long what is recorded is kept, such as 7d or 36h; 0 means as long as --history-max-bytes allows")
	f.Var(&o.maxBytes, "history-max-bytes", "how large the history of a cluster may be on disk, such as 10Gi; 0 means no bound")
}

// options returns what the server needs.
func (o *recordOptions) options(cmd *cobra.Command) (s server.RecordOptions, err error) {
	if s.Dir = o.dir; !cmd.Flags().Changed("data-dir") {
		if s.Dir, err = userStateDir(); err != nil {
			s.Missing = err
			return s, nil
		}
	}
	if s.Dir == "" {
		for _, flag := range []string{"record", "record-exclude", "record-secrets"} {
			if cmd.Flags().Changed(flag) {
				return s, fmt.Errorf("--%s says what to record, and an empty --data-dir that nothing is: leave one out", flag)
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
	s.MaxAge, s.MaxBytes = time.Duration(o.maxAge), o.maxBytes.Value()
	if b := s.MaxBytes; b < 0 || b > 0 && b < leastHistory {
		return s, fmt.Errorf("--history-max-bytes %s is too little to keep a history in: use 64Mi or more, such as %s", o.maxBytes.String(), defaultHistoryMaxBytes)
	}
	return s, nil
}

// userStateDir returns where programs keep a user's state (the XDG base directory
// specification), below which ours is.
func userStateDir() (string, error) {
	// A relative path there is to be ignored, as the specification says.
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, stateDir), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "/" {
		return "", errors.New("there is no home directory to record below: use --data-dir")
	}
	return filepath.Join(home, ".local", "state", stateDir), nil
}

// An ageValue is a flag for a duration that may have days: 7d, 1d12h, 36h.
type ageValue time.Duration

// String implements pflag.Value.
func (a *ageValue) String() string {
	d := time.Duration(*a)
	if d != 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return d.String()
}

// Set implements pflag.Value.
func (a *ageValue) Set(text string) error {
	sum, rest := time.Duration(0), text
	if days, after, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || n < 0 || n > 100_000 {
			return fmt.Errorf("%q is no age: use such as 7d or 36h", text)
		}
		sum, rest = time.Duration(n*float64(day)), after
	}
	if rest != "" || sum == 0 && text == "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is no age: use such as 7d or 36h", text)
		}
		sum += d
	}
	*a = ageValue(sum)
	return nil
}

// Type implements pflag.Value.
func (a *ageValue) Type() string { return "age" }
