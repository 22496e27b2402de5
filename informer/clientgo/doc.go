// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package clientgo implements client-go's informer interfaces with package
// informer, for programs that are written for them. An [Informer] is a
// cache.SharedIndexInformer, and [ForManager] makes a manager of
// controller-runtime use them.
//
//	pods := clientgo.Wrap(typed.New[*corev1.Pod](src, informer.Options{}), 0, cache.Indexers{
//		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
//	})
//	lister := corelisters.NewPodLister(pods.GetIndexer())
//
// The methods do what client-go documents, and keep the guarantees of package
// informer. They differ from client-go's own informers as follows:
//
//   - Objects are decoded when they are read. Two calls may return the same
//     object or two copies of one version. As in client-go, objects are shared
//     and must not be modified.
//   - A transform runs whenever an object is decoded, which may be several times
//     for one version, each time on a new object. It must give the same result
//     each time, and it saves no memory. It never receives a
//     cache.DeletedFinalStateUnknown. managedFields are removed without a
//     transform, see [informer.Options].
//   - If a handler lags by more than [informer.Options].Backlog events, the events
//     of each object are coalesced, and an object that was added and deleted
//     meanwhile is not reported. client-go keeps all events in memory.
//   - An object that is recreated under its name is deleted and added, not
//     updated. The deletion is a cache.DeletedFinalStateUnknown if it was inferred
//     from the object's absence or from its successor.
//   - A relist without changes causes no event.
//   - A resync of a handler repeats the objects that the handler knows, at the
//     handler's own period, at least one second. The informer keeps the keys that
//     each such handler knows, about 100 bytes per object.
//   - The index function cache.MetaNamespaceIndexFunc decodes nothing. Any other
//     index function decodes each version of each object.
//   - The store is read-only: its Add, Update, Delete, Replace and Resync return
//     [ErrReadOnly]. Its Bookmark, which returns nothing, does nothing.
//   - A watch error handler receives a cache.Reflector that has the type's
//     description and does not run. A refusal of the API server is also an API
//     status error, as apierrors.IsForbidden and similar functions expect.
//   - An object that cannot be decoded is reported to utilruntime.HandleError and
//     is missing from lists, indexes and events. Getting it by its key returns the
//     error.
package clientgo
