// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package servingcert has the certificate of the main listener. It is one of three: the
// operator's, in [Files]; a self-signed one in a directory, which belongs to one machine
// ([EnsureDirectory]); or a self-signed one in a [Secret], which the replicas of a
// Deployment share. [PublishCA] keeps the CA in a ConfigMap, for clients in the cluster.
package servingcert

// Failed takes what fails while a server runs, as [slog.Logger.Error] does.
type Failed func(msg string, args ...any)
