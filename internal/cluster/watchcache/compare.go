// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

const (
	// maxCompared is the largest collection, in objects, that is compared with the upstream's.
	maxCompared = 20_000
	// cheapCompared is the size up to which the upstream lists the metadata as fast as it answers
	// another question. Of a larger collection that has changed in the last busyTime, an event is
	// waited for first: it may show the same.
	cheapCompared = 1000
	busyTime      = time.Second
	// comparedRate and comparedBurst are of how many objects the upstream lists the metadata in a
	// second, of all resources together, and at once: a user who opens one watch after the
	// other must not make it list without end. A comparison counts as some objects more.
	comparedRate  = 5000
	comparedBurst = 50_000
	comparison    = 100
)

// metadataList is a list of metadata in protobuf. It is of custom resources too; an aggregated
// API server may not have it.
const metadataList = runtime.ContentTypeProtobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// newCompared returns the limit of a cache's comparisons, in objects.
func newCompared() *rate.Limiter { return rate.NewLimiter(comparedRate, comparedBurst) }

// freshState returns a view, and an RV at which the upstream's state is that of the view. The
// upstream was not beyond that RV before the call. It is enough for a reader that begins with
// a state, as a WATCH without an RV does: it gets the view's objects, this RV, and the events
// above it. The RV may be above the head, which stays where it is: that the state is the same
// does not show that nothing happened in between. Unlike [prover.fresh] it does not wait for a
// bookmark, unless the collection is very large or there are too many calls.
func (p *prover) freshState(ctx context.Context) (*timeline.View, uint64, error) {
	if v := p.timeline.View(); v != nil && v.Len() <= p.maxCompared {
		if v.Len() > cheapCompared && time.Since(v.At) < busyTime {
			if v, err := p.freshSoon(ctx); err == nil {
				return v, v.RV, nil
			}
		}
		switch same, err := p.same.Do(ctx); {
		case errors.Is(err, errDiverged):
			return nil, 0, err
		case err == nil && p.certain() == nil:
			return same.view, same.rv, nil
		}
	}
	v, err := p.fresh(ctx)
	if err != nil {
		return nil, 0, err
	}
	return v, v.RV, nil
}

// compare lists the metadata of the upstream's objects, and waits shortly for the timeline to
// have the same objects at the same RVs, or to reach the list's RV. The view of the proof has
// the state of its RV.
func (p *prover) compare(ctx context.Context) (proof, error) {
	before := p.timeline.View()
	if !p.compared.AllowN(time.Now(), before.Len()+comparison) {
		return proof{}, errNoProof
	}
	asked := time.Now()
	list, rv, err := p.listMetadata(ctx)
	if err != nil {
		return proof{}, err
	}
	if rv < before.RV {
		return proof{}, p.diverged(before, fmt.Errorf("%w: the upstream is at %d, behind the head %d", errDiverged, rv, before.RV))
	}
	soon, cancel := context.WithTimeoutCause(ctx, quickWait, errBehind)
	defer cancel()
	for {
		v := p.timeline.View()
		switch {
		case v.Epoch() != before.Epoch():
			return proof{}, errNoProof
		case v.RV >= rv:
			p.current.Store(asked.UnixNano())
			return proof{v, v.RV}, nil
		case sameState(&v.Snapshot, list):
			return proof{v, rv}, p.sameNewest(ctx, &v.Snapshot, rv)
		}
		if _, err := p.timeline.WaitRV(soon, v.RV+1); err != nil {
			return proof{}, err
		}
	}
}

// A listed is what is compared of an object.
type listed struct {
	key kube.Key
	uid string
	rv  uint64
}

// sameState reports whether a list has the objects of a snapshot, at the same RVs.
func sameState(s *timeline.Snapshot, list []listed) bool {
	if s.Len() != len(list) {
		return false
	}
	for _, m := range list {
		if o := s.Get(m.key); o == nil || o.UID != m.uid || o.RV != m.rv {
			return false
		}
	}
	return true
}

// sameNewest fails unless the upstream's newest object at an RV has the content that the snapshot
// has. After a restore of etcd, an object can have another one at the same RV; then the newest
// object is one of those that were written after the backup.
func (p *prover) sameNewest(ctx context.Context, s *timeline.Snapshot, rv uint64) error {
	var newest *scan.Object
	for o := range s.All("", "") {
		if newest == nil || o.RV > newest.RV {
			newest = o
		}
	}
	if newest == nil {
		return nil
	}
	// By a list: the gateway need not have the right to get. A consistent one could wait for the
	// API server's watch cache, which has reached the RV.
	body, err := p.read(ctx, p.id.ListPath(newest.Key.Namespace()), "application/json", url.Values{
		"fieldSelector": {"metadata.name=" + newest.Key.Name()}, "resourceVersion": {kube.FormatRV(rv)}, "resourceVersionMatch": {"NotOlderThan"},
	})
	if err != nil {
		return err
	}
	list, err := scan.ParseList(string(body), newest.Kind)
	if err == nil && (len(list.Items) != 1 || list.Items[0].JSON != newest.JSON) {
		err = fmt.Errorf("%w: %s has another content than at %d", errNoProof, newest.Key, newest.RV)
	}
	return err
}

// listMetadata returns what is compared of all objects, and the RV of the list. It has no limit,
// with which API servers before Kubernetes 1.34 read all objects from etcd.
func (p *prover) listMetadata(ctx context.Context) (all []listed, rv uint64, err error) {
	resp, err := p.ask(ctx, p.id.Path(), metadataList, nil)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	reader := scan.NewProtobufReader(io.LimitReader(resp.Body, maxAnswer), &scan.List{Kind: "PartialObjectMetadataList"})
	var it scan.Item
	for {
		ok, err := reader.Next(&it)
		if err != nil {
			return nil, 0, fmt.Errorf("%w: a list of metadata: %w", errNoProof, err)
		}
		if !ok {
			return all, reader.List().RV, nil
		}
		id, n := it.ID()
		all = append(all, listed{kube.Key(id[:n]), id[n:], it.RV})
	}
}
