// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
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
	stateDir               = "watchkeeper" // in the user's state directory
	defaultDataDir         = "~/.local/state/" + stateDir
	defaultHistoryMaxAge   = 7 * day
	defaultHistoryMaxBytes = "10Gi"
	// minHistory is more than the size of an empty history.
	minHistory = 64 << 20

	day = 24 * time.Hour
)

// recordOptions are the flags of serve for recording.
type recordOptions struct {
	dir              string
	include, exclude []string
	secrets          bool
	maxAge           ageValue
	maxBytes         bytesValue
}

func (o *recordOptions) addFlags(f *pflag.FlagSet) {
	o.maxAge = ageValue(defaultHistoryMaxAge)
	o.maxBytes.Quantity = resource.MustParse(defaultHistoryMaxBytes)
	f.StringVar(&o.dir, "data-dir", defaultDataDir, "directory of the history, with one subdirectory per cluster; the default is below $XDG_STATE_HOME if that is set; empty disables recording")
	f.StringSliceVar(&o.include, "record", []string{"core"}, "resources to record, by any of kubectl's names or by pattern: pods, deploy, deployments.apps, apps/*, *.example.com, core (workloads, Nodes, Services, Events), or * (all except Secrets and Leases)")
	f.StringSliceVar(&o.exclude, "record-exclude", nil, "resources not to record")
	f.BoolVar(&o.secrets, "record-secrets", false, "record Secrets; they can then be read from the disk")
	f.Var(&o.maxAge, "history-max-age", "how long to keep the history, such as 7d or 36h; 0 means as long as --history-max-bytes allows")
	f.Var(&o.maxBytes, "history-max-bytes", "maximum size of a cluster's history on disk, such as 10Gi; 0 means no limit")
}

// options returns the server's options.
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

// userStateDir returns the program's directory in the user's state directory (XDG
// base directory specification).
func userStateDir() (string, error) {
	// The specification requires that a relative path is ignored.
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, stateDir), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "/" {
		return "", errors.New("no home directory for the history: use --data-dir")
	}
	return filepath.Join(home, ".local", "state", stateDir), nil
}

// An ageValue is a duration flag that accepts days: 7d, 1d12h, 36h.
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
			return fmt.Errorf("%q is not an age: use one such as 7d or 36h", text)
		}
		sum, rest = time.Duration(n*float64(day)), after
	}
	if rest != "" || sum == 0 && text == "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is not an age: use one such as 7d or 36h", text)
		}
		sum += d
	}
	*a = ageValue(sum)
	return nil
}

// Type implements pflag.Value.
func (a *ageValue) Type() string { return "age" }

// A bytesValue is a flag for a number of bytes, such as 64Mi, in the form of Kubernetes'
// quantities.
type bytesValue struct{ resource.Quantity }

// sizeWithUnit matches sizes as people write them elsewhere, such as 10GB.
var sizeWithUnit = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([kKmMgGtTpP])(?:i?[bB])?$`)

// Set implements pflag.Value.
func (b *bytesValue) Set(text string) error {
	q, err := resource.ParseQuantity(text)
	if err == nil && q.Cmp(*resource.NewQuantity(math.MaxInt64, resource.BinarySI)) > 0 {
		return fmt.Errorf("%q is too large: use less than 8Ei", text)
	}
	if err == nil {
		b.Quantity = q
		return nil
	}
	if m := sizeWithUnit.FindStringSubmatch(text); m != nil {
		unit := strings.ToUpper(m[2])
		decimal := unit
		if unit == "K" {
			decimal = "k"
		}
		return fmt.Errorf("%q is not a size: use %s%s or %s%si", text, m[1], decimal, m[1], unit)
	}
	return fmt.Errorf("%q is not a size: use one such as 10Gi", text)
}

// Type implements pflag.Value.
func (b *bytesValue) Type() string { return "quantity" }
