// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var errLost = errors.New("the lease was lost: another replica may lead")

// lead waits until the replica holds the lease, and calls work, whose context ends with
// ctx or with the lease. It gives the lease up after work has returned, so that no two
// replicas work at a time. A program that has lost the lease should end, as client-go's
// do: lead returns errLost.
func lead(ctx context.Context, client kubernetes.Interface, replica string, work func(context.Context) error) error {
	lease := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "latest-warner"},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: replica},
	}
	// The lease outlasts ctx: it is given up when the work has ended.
	holding, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	leads := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lease, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { leads <- leading },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(holding)
	}()
	select {
	case <-ctx.Done():
	case leading := <-leads:
		working, stop := context.WithCancel(leading)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		if err = work(working); err == nil && ctx.Err() == nil {
			err = errLost
		}
	}
	giveUp()
	<-ended
	return err
}
