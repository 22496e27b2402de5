// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package clients holds tests with the clients that people use, in front of
// which Watchkeeper has to be invisible: client-go's informers, a
// controller-runtime manager and, in node/, the informer of
// @kubernetes/client-node. Each runs twice, against the API server and against
// a gateway in front of it, while things change and the API server is killed
// and started again; both must end with the same.
//
// It is a module of its own, so that what these clients need is no dependency
// of Watchkeeper. There is nothing in it but tests. They need bin/localcluster
// (make build), and Node's packages (npm ci in node/).
package clients
