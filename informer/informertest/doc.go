// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package informertest is an API server in memory, for tests of controllers and
// informers: an http.Handler that serves the Kubernetes API of a few resources in JSON.
//
//	api := informertest.New(informertest.Options{Resources: []informertest.Resource{widgets}})
//	network := informertest.NewNetwork(api)
//	defer network.Close()
//	src := informer.NewSource(network.URL(), network)  // for informers
//	config := &rest.Config{Host: network.URL().String(), Transport: network} // for client-go
//	config.ContentType = "application/json"                                  // see JSON
//	api.Put("widgets.example.com", `{"metadata":{"namespace":"ns","name":"a"},"spec":{"size":3}}`)
//
// Each kind of request has a file that begins with the supported behaviour of
// kube-apiserver: list.go, watch.go, get.go, write.go and discovery.go. Other requests
// are answered with 404; there is no authentication, no admission, no defaulting and no
// validation of objects.
//
// # JSON
//
// The server speaks JSON alone: objects, and their metadata (PartialObjectMetadata).
// Programs whose types have protobuf request JSON in their tests:
//
//   - Informers with a codec of generated types: informer.Options{JSON: true}.
//   - Clients of client-go: a rest.Config with the ContentType "application/json". Their
//     default is to write protobuf, which gets 415.
//   - Managers of controller-runtime: with such a rest.Config, clientgo.ForManager
//     requests JSON, too.
//
// # Objects
//
// A test writes with [Server.Put] and [Server.Delete], or over HTTP. One counter gives
// all resourceVersions. All changes are kept until [Server.Compact] or [Server.Expire],
// so that a list at any resourceVersion and a watch from any are possible.
//
// # Writes
//
// Over HTTP, the server has, with the errors of kube-apiserver:
//
//   - create, also with generateName: uid and creationTimestamp are set;
//     AlreadyExists.
//   - update: Conflict if the object has another resourceVersion or uid.
//   - merge patches, with the errors of an update.
//   - delete, with preconditions: Conflict if the object has another uid or
//     resourceVersion. An object with finalizers gets a deletionTimestamp and goes with
//     the last of them.
//   - updates and merge patches of /status, if [Resource].Status is set. Then
//     metadata.generation grows with all changes but those of metadata and status.
//
// It refuses server-side apply, strategic merge patches and JSON patches with 415, dry
// runs with 400, and deletecollection with 405. It ignores fieldManager, fieldValidation,
// propagationPolicy and gracePeriodSeconds: there are no managedFields, and objects stay
// when their owner or namespace is deleted.
//
// # Faults
//
// A [Control] is a hook around responses: it refuses, delays, cuts or changes those that
// a test chooses, or writes other bytes. [Server.EndWatches], [Server.CutWatches],
// [Server.Expire] and [Server.Compact] act on all watches and the whole history.
// [Server.Backup] and [Server.Restore] go back to an earlier state, as etcd's do.
//
// # Time
//
// The server uses the clock of package time, and waits only on channels. In a bubble of
// testing/synctest, with the connections of a [Network], bookmarks, timeouts and
// backoffs take no real time. Each request runs in the goroutine of its connection; the
// server starts none.
//
// # Shared objects
//
// A test of a program sets DetectMutation in the options of its informers, which finds
// where the program modifies an object that it shares with other readers.
//
// # Formats
//
// [Format], [Content] and what belongs to them are for the tests of Watchkeeper itself,
// whose server has other formats than JSON. They have no compatibility promise.
package informertest
