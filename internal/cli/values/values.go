// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package values has types of flags, and the default of their directories.
package values

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

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	stateDir = "watchkeeper" // in the user's state directory
	// DefaultStateDir is what [StateDir] usually returns, for help.
	DefaultStateDir = "~/.local/state/" + stateDir

	// Day is 24 hours.
	Day = 24 * time.Hour
)

// ErrNoHome says that a process has neither $HOME nor $XDG_STATE_HOME.
var ErrNoHome = errors.New("no home directory")

// StateDir returns the program's directory in the user's state directory (XDG
// base directory specification), or ErrNoHome.
func StateDir() (string, error) {
	// The specification requires that a relative path is ignored.
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, stateDir), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "/" {
		return "", ErrNoHome
	}
	return filepath.Join(home, ".local", "state", stateDir), nil
}

// An Age is a duration flag that accepts days: 7d, 1d12h, 36h.
type Age time.Duration

// String implements pflag.Value.
func (a *Age) String() string {
	d := time.Duration(*a)
	if d != 0 && d%Day == 0 {
		return strconv.FormatInt(int64(d/Day), 10) + "d"
	}
	return d.String()
}

// Set implements pflag.Value.
func (a *Age) Set(text string) error {
	sum, rest := time.Duration(0), text
	if days, after, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || n < 0 || n > 100_000 {
			return fmt.Errorf("%q is not an age: use one such as 7d or 36h", text)
		}
		sum, rest = time.Duration(n*float64(Day)), after
	}
	if rest != "" || sum == 0 && text == "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is not an age: use one such as 7d or 36h", text)
		}
		sum += d
	}
	*a = Age(sum)
	return nil
}

// Type implements pflag.Value.
func (a *Age) Type() string { return "age" }

// Bytes is a flag for a number of bytes, such as 64Mi, in the form of Kubernetes'
// quantities.
type Bytes struct{ resource.Quantity }

// sizeWithUnit matches sizes as people write them elsewhere, such as 10GB.
var sizeWithUnit = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([kKmMgGtTpP])(?:i?[bB])?$`)

// Set implements pflag.Value.
func (b *Bytes) Set(text string) error {
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
func (b *Bytes) Type() string { return "quantity" }

// A Moment is a flag for the text of a moment. To leave it out is the way to its default: an empty
// one is what is left of a variable that a script has not set.
type Moment string

// String implements pflag.Value.
func (m *Moment) String() string { return string(*m) }

// Set implements pflag.Value.
func (m *Moment) Set(text string) error {
	if text == "" {
		return errors.New("a moment cannot be empty: name one, such as 10m, or leave the flag out")
	}
	*m = Moment(text)
	return nil
}

// Type implements pflag.Value.
func (m *Moment) Type() string { return "string" }
