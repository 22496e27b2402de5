// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command watchkeeper-typed is a client of bench/informer: this project's informer with
// protobuf. Unlike the one with JSON it links the types of Kubernetes.
package main

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/bench/informer/measure"
	"github.com/watchkeeper/watchkeeper/bench/informer/ours"
	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/typed"
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
