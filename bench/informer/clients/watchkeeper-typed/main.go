// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command watchkeeper-typed is this project's informer of protobuf, for
// bench/informer to measure: it holds the types of Kubernetes, which the one of
// JSON need not.
package main

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/bench/informer/measure"
	"github.com/watchkeeper/watchkeeper/bench/informer/ours"
	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/typed"
	"github.com/watchkeeper/watchkeeper/informer/zstd"
)

func main() {
	plain := func() informer.Options { return informer.Options{} }
	measure.Main(
		ours.Mode("protobuf", "protobuf", typed.Protobuf[*corev1.Pod](), plain),
		ours.Mode("protobuf-zstd", "protobuf", typed.Protobuf[*corev1.Pod](), func() informer.Options {
			return informer.Options{Compression: zstd.New()}
		}),
	)
}
