// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package clientgo has informers in the shape of client-go's, for programs that
// are made for that: an [Informer] is a cache.SharedIndexInformer, and
// [ForManager] has a manager of controller-runtime use them.
//
//	pods := clientgo.Wrap(typed.New[*corev1.Pod](src, informer.Options{}), 0, cache.Indexers{
//		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
//	})
//	lister := corelisters.NewPodLister(pods.GetIndexer())
//
// What client-go documents of its methods holds, and what package informer
// promises besides. The differences:
//
//   - Objects are decoded when they are handed out. Of one version of an object
//     two calls may return two copies, or the same: it is shared, as in
//     client-go, and must not be changed.
//   - A transform is called whenever an object is decoded, so for one version
//     maybe several times, each time with a new object; it has to do the same to
//     each, and saves no memory. managedFields are left out without one, see
//     [informer.Options]. It gets no cache.DeletedFinalStateUnknown.
//   - A handler that is behind by more than [informer.Options].Backlog events is
//     told of an object's changes in one, and of an object that has come and
//     gone not at all; client-go holds all events for it.
//   - A name that comes back as another object is deleted and added, and not
//     updated. The deletion is a cache.DeletedFinalStateUnknown if it was learned
//     from the object's absence, or from its successor.
//   - A relist in which nothing is new tells nothing.
//   - A handler's resync is told what the handler knows, at the handler's own
//     period, a second at least. It has the informer keep the keys that each
//     such handler knows, some 100 bytes for an object.
//   - The index function of cache.NamespaceIndex, cache.MetaNamespaceIndexFunc,
//     decodes nothing; any other one has each version of each object decoded.
//   - The store cannot be written: its Add, Update, Delete, Replace and Resync
//     return [ErrReadOnly]. Its Bookmark, which has no result, does nothing.
//   - A watch error handler gets a cache.Reflector that tells the type, and does
//     not run. What the API server refuses is also an API status error, as
//     apierrors.IsForbidden and the like know it.
//   - An object that cannot be decoded is told to utilruntime.HandleError, and
//     is missing from lists, indexes and events; getting it by its key returns
//     the error.
package clientgo
