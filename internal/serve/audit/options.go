// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"io"
	"slices"
	"strings"

	pluginlog "k8s.io/apiserver/plugin/pkg/audit/log"
)

// The values of --audit-log-mode.
const (
	// ModeBatch writes events from a buffer.
	ModeBatch = "batch"
	// ModeBlocking writes each event before the request goes on.
	ModeBlocking = "blocking"
	// ModeBlockingStrict is ModeBlocking, and refuses a request whose RequestReceived
	// event cannot be written.
	ModeBlockingStrict = "blocking-strict"
)

// Modes and Formats are the values of --audit-log-mode and --audit-log-format.
var (
	Modes   = []string{ModeBatch, ModeBlocking, ModeBlockingStrict}
	Formats = pluginlog.AllowedFormats
)

// Options are kube-apiserver's flags of the same names. The zero Options turn auditing
// off; start with [DefaultOptions].
type Options struct {
	PolicyFile string // --audit-policy-file

	LogPath      string // --audit-log-path: "-" is standard output, "" is off
	LogMaxAge    int    // --audit-log-maxage: days; 0 keeps files of any age
	LogMaxBackup int    // --audit-log-maxbackup: files; 0 keeps any number
	LogMaxSize   int    // --audit-log-maxsize: MB; 0 disables rotation
	LogFormat    string // --audit-log-format
	LogMode      string // --audit-log-mode
	LogCompress  bool   // --audit-log-compress: rotated files

	// LogBatchBufferSize is --audit-log-batch-buffer-size: the events that mode batch
	// buffers; further ones are lost.
	LogBatchBufferSize int

	// Stdout is what the path "-" means; nil means that of the process.
	Stdout io.Writer
}

// DefaultOptions returns kube-apiserver's defaults, with which auditing is off.
func DefaultOptions() Options {
	return Options{
		LogMaxAge:          366,
		LogMaxBackup:       100,
		LogMaxSize:         100,
		LogFormat:          pluginlog.FormatJson,
		LogMode:            ModeBlocking,
		LogBatchBufferSize: 10000,
	}
}

func (o *Options) validate() error {
	if !slices.Contains(Modes, o.LogMode) {
		return fmt.Errorf("--audit-log-mode %q is unknown: use %s", o.LogMode, strings.Join(Modes, ", "))
	}
	if !slices.Contains(Formats, o.LogFormat) {
		return fmt.Errorf("--audit-log-format %q is unknown: use %s", o.LogFormat, strings.Join(Formats, ", "))
	}
	for _, f := range []struct {
		flag  string
		value int
	}{{"maxage", o.LogMaxAge}, {"maxbackup", o.LogMaxBackup}, {"maxsize", o.LogMaxSize}} {
		if f.value < 0 {
			return fmt.Errorf("--audit-log-%s %d is negative: use 0 for no limit", f.flag, f.value)
		}
	}
	if o.LogMode == ModeBatch && o.LogBatchBufferSize <= 0 {
		return fmt.Errorf("--audit-log-batch-buffer-size %d is not positive", o.LogBatchBufferSize)
	}
	return nil
}
