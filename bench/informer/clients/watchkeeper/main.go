// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command watchkeeper is a client of bench/informer: this project's informer with JSON.
package main

import (
	"github.com/watchkeeper/watchkeeper/bench/informer/measure"
	"github.com/watchkeeper/watchkeeper/bench/informer/ours"
	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/zstd"
)

func main() {
	plain := func() informer.Options { return informer.Options{} }
	measure.Main(
		ours.Mode("json", "JSON", informer.JSON[map[string]any](), plain),
		ours.Mode("json-zstd", "JSON", informer.JSON[map[string]any](), func() informer.Options {
			return informer.Options{Compression: zstd.New()}
		}),
	)
}
