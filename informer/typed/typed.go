// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package typed brings the informer together with the generated types of
// Kubernetes. So far it holds the scan of protobuf to what they decode.
package typed
