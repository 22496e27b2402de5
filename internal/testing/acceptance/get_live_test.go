// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/termtest"
)

// agesOf are ages, with the spaces that pad a column, and the line below the tables.
var agesOf = regexp.MustCompile(` +(\d+[smhd])+\b`)

// tables returns the lines of tables, without ages and padding.
func tables(screen string) string {
	var lines []string
	for line := range strings.Lines(agesOf.ReplaceAllString(screen, " AGE")) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// TestGetInPlace: after random changes, the tables in a terminal are those that kubectl get
// prints; also after the gateway was away.
func TestGetInPlace(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	mine, err := cluster.Gateway("--data-dir", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { mine.Terminate() }()
	ns := namespace(t)
	kubectl(t, "-n", ns, "create", "deployment", "web", "--image=registry.example/web:1", "--replicas=2")
	kubectl(t, "-n", ns, "create", "deployment", "api", "--image=registry.example/api:1", "--replicas=1")
	term := termtest.New(t, 132, 60, "KUBECONFIG="+cluster.Kubeconfig(), "KUBECACHEDIR="+t.TempDir())
	term.Type("clear; " + cluster.Program() + " get deploy,rs,pods -w -n " + ns + " -s " + mine.URL)
	term.Wait(`^live · \d+ rows`)
	settled := func(when string) {
		t.Helper()
		var want, got string
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(300 * time.Millisecond) {
			want = tables(kubectl(t, "-n", ns, "get", "deploy,rs,pods"))
			got, _, _ = strings.Cut(tables(term.Screen()), "\nlive ·")
			if got+"\n" == want || got == want {
				return
			}
		}
		t.Fatalf("%s: -kubectl +watchkeeper\n%s\n%s", when, cmp.Diff(want, got), term.Screen())
	}
	settled("at first")
	random := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		name := []string{"web", "api"}[random.IntN(2)]
		switch random.IntN(4) {
		case 0:
			kubectl(t, "-n", ns, "scale", "deployment/"+name, fmt.Sprintf("--replicas=%d", random.IntN(5)))
		case 1:
			kubectl(t, "-n", ns, "set", "image", "deployment/"+name, fmt.Sprintf("%s=registry.example/%s:%d", name, name, random.IntN(3)))
		case 2:
			kubectl(t, "-n", ns, "delete", "pods", "-l", "app="+name, "--wait=false")
		case 3:
			kubectl(t, "-n", ns, "annotate", "deployment/"+name, fmt.Sprintf("note=%d", random.Int()), "--overwrite")
		}
	}
	settled("after the changes")
	mine.Kill()
	term.Wait(`^stale since `)
	kubectl(t, "-n", ns, "scale", "deployment/web", "--replicas=3")
	if err := mine.Restart(); err != nil {
		t.Fatal(err)
	}
	term.Wait(`^live · `)
	settled("after the gateway was away")
	term.Keys("q")
	term.Wait(`^\$ ?$`)
}

// TestGetInPlaceOutage: while the API server is away, the tables of a gateway, which stay, are
// not called live, and neither are the lines of --plain.
func TestGetInPlaceOutage(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quietOutage)
	command := cluster.Program() + " get nodes,namespaces -w -s " + gw.URL
	env := []string{"KUBECONFIG=" + cluster.Kubeconfig(), "KUBECACHEDIR=" + t.TempDir()}
	table, plain := termtest.New(t, 132, 60, env...), termtest.New(t, 132, 60, env...)
	table.Type("clear; " + command)
	plain.Type("clear; " + command + " --plain")
	table.Wait(`^live · \d+ rows`)
	plain.Wait(`(?m)^NAME `)
	outages[quietOutage].Ready()
	outage(t, quietOutage, func() {
		table.Wait(`^stale since [0-9:]+ \(no answer from the API server`)
		plain.Wait(` nodes: stale: no answer from the API server`)
		plain.Wait(` namespaces: stale: no answer from the API server`)
	})
	table.Wait(`^live · \d+ rows`)
	plain.Wait(` nodes: up to date again`)
	plain.Wait(` namespaces: up to date again`)
	table.Keys("q")
	plain.Keys("C-c")
}
