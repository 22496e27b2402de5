// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package connect finds the server of a command, from kubectl's connection flags and
// kubeconfig.
//
// The server is the first of: the flag --server, [Variable], a gateway on this machine
// ([DefaultGateway]), the server of the current context, and, for commands that need a gateway,
// one in its cluster, through a port-forward. As in kubectl, --server
// replaces the address of the context's cluster and nothing else. Unlike kubectl, no
// credentials are sent in clear text: a server with an http URL gets none.
package connect
