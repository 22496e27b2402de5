// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"gopkg.in/natefinch/lumberjack.v2"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
)

// An Auditor evaluates the policy and writes the events. It is safe for concurrent use.
type Auditor struct {
	policy  audit.PolicyRuleEvaluator
	backend *backend
	// refused counts requests that mode blocking-strict refused.
	refused atomic.Int64
}

// New returns the Auditor of the options, nil if they turn auditing off. It creates
// the log file, and the directory for it.
func New(o Options, log *slog.Logger) (*Auditor, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	var rules *auditinternal.Policy
	if o.PolicyFile != "" {
		var err error
		if rules, err = policy.LoadPolicyFromFile(o.PolicyFile); err != nil {
			return nil, fmt.Errorf("--audit-policy-file: %w", err)
		}
	}
	switch {
	case o.LogPath == "" && rules == nil:
		return nil, nil
	case o.LogPath == "":
		log.Warn("no audit events are recorded: --audit-policy-file needs --audit-log-path")
		return nil, nil
	case rules == nil: // as with kube-apiserver
		log.Warn("no audit events are recorded: --audit-log-path needs --audit-policy-file")
		return nil, nil
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	reduce(rules, log)
	out, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("--audit-log-path: %w", err)
	}
	return &Auditor{policy: policy.NewPolicyRuleEvaluator(rules), backend: newBackend(o, out, log)}, nil
}

// reduce sets the levels of rules to those that the gateway can record.
func reduce(rules *auditinternal.Policy, log *slog.Logger) {
	var reduced []int
	for i := range rules.Rules {
		if l := &rules.Rules[i].Level; auditinternal.LevelMetadata.Less(*l) {
			*l = auditinternal.LevelMetadata
			reduced = append(reduced, i+1)
		}
	}
	if reduced != nil {
		log.Warn("audit events have no request and response bodies: rules with the levels Request and RequestResponse count as Metadata", "rules", reduced)
	}
}

// open returns the log, as kube-apiserver opens it.
func open(o Options) (io.WriteCloser, error) {
	if o.LogPath == "-" {
		if o.Stdout == nil {
			return stdout{os.Stdout}, nil
		}
		return stdout{o.Stdout}, nil
	}
	if err := os.MkdirAll(filepath.Dir(o.LogPath), 0o700); err != nil {
		return nil, err
	}
	// So that an error shows now, and the file is for its owner only.
	f, err := os.OpenFile(o.LogPath, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil || o.LogMaxSize == 0 {
		return f, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return &lumberjack.Logger{
		Filename: o.LogPath, MaxAge: o.LogMaxAge, MaxBackups: o.LogMaxBackup, MaxSize: o.LogMaxSize, Compress: o.LogCompress,
	}, nil
}

// stdout is not closed with the log.
type stdout struct{ io.Writer }

func (stdout) Close() error { return nil }

// Run writes buffered events until ctx ends, then those that are left, and
// closes the log. Events that come later are lost, so the caller ends ctx after the last
// request has ended.
func (a *Auditor) Run(ctx context.Context) error {
	if a == nil {
		<-ctx.Done()
		return nil
	}
	return a.backend.run(ctx)
}
