// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// BenchmarkLeaderElection measures what it costs on disk to record ConfigMaps of which one is a
// lock of a leader election, renewed every two seconds for a day: docs/operations.md has the
// figures. The others are those of each namespace, with the certificate of the cluster.
func BenchmarkLeaderElection(b *testing.B) {
	const namespaces, renewals = 1000, 24 * 3600 / 2
	certificate := strings.Repeat("MIIDBTCCAe2gAwIBAgIIJpTdTJmtTfEwDQYJKoZIhvcNAQELBQAwFTETMBEGA1UE\\n", 17)
	begin := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	lock := func(i int) *scan.Object {
		now := begin.Add(time.Duration(2*i) * time.Second).Format(time.RFC3339)
		return must(scan.ParseObject(fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"controller-leader","namespace":"system","uid":"7a7f8d0e-7d4a-4d2b-9d25-0d6c1e0a8f43","resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z",`+
			`"annotations":{"control-plane.alpha.kubernetes.io/leader":"{\"holderIdentity\":\"controller-6d5c8658c8-7nqk5_0f7f0b7c-41d8-4f0e-a7d6-95a8b4b1bd21\",\"leaseDurationSeconds\":15,\"acquireTime\":\"2026-01-30T00:00:00Z\",\"renewTime\":\"%s\",\"leaderTransitions\":3}"},`+
			`"managedFields":[{"manager":"controller","operation":"Update","apiVersion":"v1","time":"%s","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:control-plane.alpha.kubernetes.io/leader":{}}}}}]}}`, 10_000+10*i, now, now)))
	}
	size := func(s *Store) int64 {
		if err := s.db.Flush(); err != nil {
			b.Fatal(err)
		}
		if err := s.db.Compact(b.Context(), nil, []byte{0xff}, false); err != nil {
			b.Fatal(err)
		}
		return int64(s.db.Metrics().Table.Local.LiveSize + s.db.Metrics().BlobFiles.Local.LiveSize)
	}
	for b.Loop() {
		s := must(Open("history", Options{Cluster: "c", FS: vfs.NewMem()}))
		st := must(s.Stream(kube.Resource{Version: "v1", Name: "configmaps"}))
		var first []*scan.Object
		for i := range namespaces {
			first = append(first, must(scan.ParseObject(fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"kube-root-ca.crt","namespace":"n%04d","uid":"7a7f8d0e-7d4a-4d2b-9d25-%012d","resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z"},"data":{"ca.crt":"%s"}}`, i, i, i+1, certificate))))
		}
		form := Form{ListKind: "ConfigMapList", Item: must(scan.ParseTemplate(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{}}`))}
		if err := st.Begin(form, slices.Values(append(first, lock(0))), 10_000, begin); err != nil {
			b.Fatal(err)
		}
		before := size(s)
		prev := lock(0)
		for i := 1; i <= renewals; i++ {
			o := lock(i)
			at := begin.Add(time.Duration(2*i) * time.Second)
			if err := st.Append([]Event{{Type: kube.Modified, Object: o, Prev: prev, At: at}}, o.RV, at); err != nil {
				b.Fatal(err)
			}
			prev = o
		}
		grown := size(s) - before
		b.ReportMetric(float64(before)/namespaces, "B/ConfigMap")
		b.ReportMetric(float64(grown)/renewals, "B/renewal")
		b.ReportMetric(float64(grown)/1e6, "MB/day")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
