// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package watchread reads the body of a watch frame by frame: JSON, one event
// per line, or protobuf, each event after its length. It keeps the bytes of a
// frame as they came, so that they can be compared. Only tests and benchmarks
// import it; the gateway reads watches with internal/kube, which must not be
// judged by its own reader.
package watchread
