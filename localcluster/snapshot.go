// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

const snapshotTimeout = time.Minute

func snapshotCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "snapshot FILE",
		Short: "Save a snapshot of etcd to a file",
		Long: `Save a snapshot of etcd to a file, as etcdctl snapshot save does. The cluster continues.
The file contains all objects, Secrets too.`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return clusterAt(*dir).snapshot(command.Context(), args[0])
		},
	}
}

func restoreCommand(dir *string) *cobra.Command {
	req := request{Op: "restore"}
	command := &cobra.Command{
		Use:   "restore FILE",
		Short: "Replace etcd's data by a snapshot",
		Long: `Replace etcd's data by a snapshot, as etcdutl snapshot restore does, and wait until the
cluster is ready.

All components stop for the time of the restore, as the documentation of Kubernetes
recommends. With --keep-running only etcd stops, and the caches of the others keep what
they had.

Without --bump-revision, resourceVersions go back to those of the snapshot, and the
changes after it get resourceVersions that other changes had before. With it, etcd adds
the number to its revision and marks all earlier ones as compacted: watches end with 410
Gone, and clients list again. It must be more than the number of changes since the
snapshot; 1000000000 is customary.

The old data is deleted once etcd serves the snapshot. If that fails, the old data stays
in DIR/etcd-before-restore.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var err error
			if req.File, err = filepath.Abs(args[0]); err != nil {
				return err
			}
			return callAndPrint(*dir, req)
		},
	}
	command.Flags().Uint64Var(&req.BumpRevision, "bump-revision", 0, "add this to etcd's revision, and mark the earlier ones as compacted")
	command.Flags().BoolVar(&req.KeepRunning, "keep-running", false, "stop only etcd, not the API servers and their clients")
	return command
}

func (c cluster) snapshot(ctx context.Context, file string) error {
	s, err := c.readState()
	if err != nil {
		return fmt.Errorf("no cluster in %s: %w", c.dir, err)
	}
	config, err := c.tlsConfig("etcd-ca", "apiserver-etcd")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	manager := snapshot.NewV3(zap.NewNop())
	_, err = manager.Save(ctx, clientv3.Config{
		Endpoints: []string{"https://" + loopback(s.Ports[etcd])},
		TLS:       config,
		Logger:    zap.NewNop(),
	}, file)
	if err != nil {
		return fmt.Errorf("saving a snapshot: %w; does etcd run?", err)
	}
	status, err := manager.Status(file)
	if err != nil {
		return err
	}
	fmt.Printf("%s has %d keys at revision %d\n", file, status.TotalKey, status.Revision)
	return nil
}

// restore replaces etcd's data by a snapshot, and starts what it had to stop. It changes
// nothing if the snapshot cannot be used.
func (s *supervisor) restore(ctx context.Context, req request) (message string, err error) {
	if !s.restoring.TryLock() {
		return "", errors.New("another restore is in progress")
	}
	defer s.restoring.Unlock()
	began := time.Now()
	data, fresh, old := s.cluster.path("etcd"), s.cluster.path("etcd-restored"), s.cluster.path("etcd-before-restore")
	if _, err := os.Stat(old); err == nil {
		return "", fmt.Errorf("%s has the data from before a restore that failed; move or delete it", old)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.RemoveAll(fresh); err != nil { // from a restore that was interrupted
		return "", err
	}
	defer os.RemoveAll(fresh)
	if err := s.cluster.unpack(req, fresh); err != nil {
		return "", fmt.Errorf("nothing was changed: reading the snapshot %s: %w", req.File, err)
	}

	// Killed: what a component would do before its end is undone by the restore.
	var ended []*component
	if !req.KeepRunning {
		ended = append(s.stopTier(clientTier, syscall.SIGKILL), s.stopTier(apiTier, syscall.SIGKILL)...)
	}
	s.stopTier(storeTier, syscall.SIGKILL)
	if err := os.Rename(data, old); err != nil {
		return "", errors.Join(err, s.startAgain(ctx, ended))
	}
	if err := os.Rename(fresh, data); err != nil {
		return "", fmt.Errorf("%w; the old data is in %s", err, old)
	}
	if err := s.startAgain(ctx, ended); err != nil {
		return "", fmt.Errorf("%w; the old data is in %s", err, old)
	}
	if err := os.RemoveAll(old); err != nil {
		return "", err
	}
	message = fmt.Sprintf("%s is restored (%s)", req.File, elapsed(began))
	fmt.Fprintln(s.out, message)
	return message, nil
}

// unpack writes a snapshot as etcd's data into a new directory.
func (c cluster) unpack(req request, dir string) error {
	s, err := c.readState()
	if err != nil {
		return err
	}
	peer := "https://" + loopback(s.Ports[portEtcdPeer])
	return snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath:   req.File,
		Name:           etcdName,
		OutputDataDir:  dir,
		PeerURLs:       []string{peer},
		InitialCluster: etcdName + "=" + peer,
		RevisionBump:   req.BumpRevision,
		MarkCompacted:  req.BumpRevision > 0,
	})
}

// startAgain starts etcd and then the components that had to end for a restore, and
// waits until all are ready.
func (s *supervisor) startAgain(ctx context.Context, ended []*component) error {
	store, err := s.find(etcd)
	if err != nil {
		return err
	}
	if err := s.start(ctx, store); err != nil {
		return err
	}
	for _, t := range []tier{apiTier, clientTier} {
		var group sync.WaitGroup
		failed := make([]error, len(ended))
		for i, c := range ended {
			if c.tier == t {
				group.Go(func() { failed[i] = s.start(ctx, c) })
			}
		}
		group.Wait()
		if err := errors.Join(failed...); err != nil {
			return err
		}
	}
	return s.awaitAPI(ctx, store)
}
