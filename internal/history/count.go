// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// Count returns how many objects All would yield. It reads names, and objects only
// where there was another one of the name since.
func (st *Stream) Count(ctx context.Context, rv uint64, namespace string, from kube.Key) (n int, err error) {
	end := after(appendKey(nil, tableNames, st.id))
	if namespace != "" {
		from = max(from, kube.Key(namespace+"/"))
		end = appendNameKey(nil, st.id, kube.Key(namespace+"0")) // '0' is the byte after '/'
	}
	var r reader
	err = st.read(rv, &r, func() (err error) {
		it, err := st.s.db.NewIter(&pebble.IterOptions{LowerBound: appendNameKey(nil, st.id, from), UpperBound: end})
		if err != nil {
			return damage(err)
		}
		defer func() { err = damage(errors.Join(err, it.Error(), it.Close())) }()
		for it.First(); it.Valid(); it.Next() {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			value, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			l, err := parseLife(value)
			if err != nil {
				return err
			}
			switch {
			case !l.at(rv):
			case rv >= l.born:
				n++
			default: // it may have been an earlier one
				o, err := r.get(kube.Key(it.Key()[prefixLen:]), rv)
				if err != nil {
					return err
				}
				if o != nil {
					n++
				}
			}
		}
		return nil
	})
	return n, err
}
