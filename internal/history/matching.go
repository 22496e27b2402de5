// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// A Match selects events by their object and type, which the log has.
type Match func(kube.Key, kube.EventType) bool

// A Search is a search for the newest events that a Match selects.
type Search struct {
	Match Match
	// From and To bound the RVs: From < RV <= To.
	From, To uint64
	// Since ends the search at an older event.
	Since time.Time
	// Events is how many events to find, Scan how many entries of the log to read.
	Events, Scan int
}

// Found is what a [Search] has found.
type Found struct {
	// Events are in order. There are more than asked for if the first one shares its RV
	// with others.
	Events []Event
	// Rest is the RV up to which the log was not read: From if all of it was.
	Rest uint64
	// Scanned is how many entries were read.
	Scanned int
}

// Search returns the newest events that match. It reads the log, which is small, and then
// only the versions that match.
func (st *Stream) Search(ctx context.Context, q Search) (Found, error) {
	found, hits, err := st.searchLog(ctx, q)
	if err != nil {
		return found, err
	}
	for _, hit := range slices.Backward(hits) {
		// None if retention has removed it meanwhile.
		events, err := st.LastVersions(ctx, hit.key, hit.rv-1, hit.rv, 1)
		if err != nil {
			return found, err
		}
		found.Events = append(found.Events, events...)
	}
	return found, nil
}

// A hit is an entry of the log that matches.
type hit struct {
	key kube.Key
	rv  uint64
}

// searchLog returns the hits, the newest first.
func (st *Stream) searchLog(ctx context.Context, q Search) (found Found, hits []hit, err error) {
	if err := st.s.acquire(); err != nil {
		return found, nil, err
	}
	defer st.s.release()
	found.Rest = max(q.From, st.Span().From.RV)
	if q.To <= found.Rest {
		return found, nil, nil
	}
	it, err := st.s.iter(appendLogKey(nil, st.id, found.Rest+1, ""), appendLogKey(nil, st.id, q.To+1, ""))
	if err != nil {
		return found, nil, err
	}
	defer func() { err = damage(errors.Join(err, it.Error(), it.Close())) }()
	last := uint64(0)
	for it.Last(); it.Valid(); it.Prev() {
		k := it.Key()
		rv := binary.BigEndian.Uint64(k[prefixLen:])
		// The events at one RV stay together.
		if rv != last && (len(hits) >= q.Events || found.Scanned >= q.Scan) {
			found.Rest = rv
			return found, hits, nil
		}
		last = rv
		if found.Scanned++; found.Scanned%1024 == 0 && ctx.Err() != nil {
			return found, nil, context.Cause(ctx)
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return found, nil, err
		}
		v, _, err := parseFlags(value)
		if err != nil {
			return found, nil, err
		}
		if v.at.Before(q.Since) {
			break
		}
		if key := kube.Key(k[prefixLen+8:]); q.Match(key, v.typ) {
			hits = append(hits, hit{key, rv})
		}
	}
	return found, hits, nil
}
