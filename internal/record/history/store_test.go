// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

var pods = kube.Resource{Version: "v1", Name: "pods"}

var podForm = Form{ListKind: "PodList", Item: must(scan.ParseTemplate(`{"kind":"Pod","apiVersion":"v1","metadata":{}}`))}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ms returns the time n ms after 1970.
func ms(n uint64) time.Time { return time.UnixMilli(int64(n)) }

// object returns a Pod with own unique bytes.
func object(key kube.Key, rv uint64, own int) *scan.Object {
	noise := make([]byte, own)
	rnd := rand.New(rand.NewPCG(rv, 0))
	for i := range noise {
		noise[i] = 'a' + byte(rnd.IntN(26))
	}
	text := fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":"u-%s","resourceVersion":"%d"},"spec":{"x":%q},"status":{"at":"%d"}}`,
		key.Name(), key.Namespace(), key, rv, noise, rv*7)
	o, err := scan.ParseObject(text)
	if err != nil {
		panic(err)
	}
	o.Row, o.Columns = fmt.Sprintf(`"cells":["%s",%d]`, key.Name(), rv), `[{"name":"Name"}]`
	return o
}

func testLog(to io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }

// fromEnv returns the number in an environment variable, or otherwise.
func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// newSeed returns WATCHKEEPER_HISTORY_SEED, or a random number. A test that fails
// logs it.
func newSeed(t *testing.T) uint64 {
	t.Helper()
	seed := fromEnv(t, "WATCHKEEPER_HISTORY_SEED", rand.Uint64N(1<<32))
	t.Logf("WATCHKEEPER_HISTORY_SEED=%d", seed)
	return seed
}

// rounds returns WATCHKEEPER_HISTORY_ROUNDS (1) times n: the number of rounds of a
// random test. Many runs of few rounds cover as much as a long run.
func rounds(t *testing.T, n int) int {
	t.Helper()
	return n * int(fromEnv(t, "WATCHKEEPER_HISTORY_ROUNDS", 1))
}
