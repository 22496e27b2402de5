// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// minor is the minor version of the control plane's Kubernetes, such as 37. What a test
// expects of another version depends on it.
var minor int

// betas are the feature gates of resources that are off by default, with the first
// minor version that knows them (pkg/features/kube_features.go of Kubernetes): an API
// server does not start with a gate that it does not know.
var betas = map[string]int{
	"ClusterTrustBundle":              27,
	"PodCertificateRequest":           34,
	"DRADeviceTaintRules":             35, // before, runtime-config is enough
	"DRAResourcePoolStatus":           36,
	"GenericWorkload":                 35,
	"TopologyAwareWorkloadScheduling": 36,
	"CompositePodGroup":               37,
	"EvictionRequestAPI":              37,
	"StorageVersionMigrator":          30,
	"CoordinatedLeaderElection":       31,
}

// betaGates returns the flag's value for those betas that the control plane knows.
func betaGates() string {
	var gates []string
	for gate, since := range betas {
		if minor >= since {
			gates = append(gates, gate+"=true")
		}
	}
	return strings.Join(gates, ",")
}

// newKinds are the kinds of fieldManifest whose apiVersion there is since a minor version,
// with the one before it (the folders of k8s.io/api). A kind without one is not in an older
// cluster, which then has no resource to compare, either.
var newKinds = map[string]struct {
	since   int
	before  string
	changes []string // what the version before needs: pairs for strings.NewReplacer
}{
	"PodCertificateRequest":          {since: 35, before: "certificates.k8s.io/v1alpha1"},
	"MutatingAdmissionPolicy":        {since: 36, before: "admissionregistration.k8s.io/v1beta1"},
	"MutatingAdmissionPolicyBinding": {since: 36, before: "admissionregistration.k8s.io/v1beta1"},
	"ResourcePoolStatusRequest":      {since: 36},
	"Workload":                       {since: 37}, // older versions have others
	"PodGroup":                       {since: 37},
	"CompositePodGroup":              {since: 37},
	"EvictionRequest":                {since: 37},
	"StorageVersionMigration": {
		since: 35, before: "storagemigration.k8s.io/v1alpha1",
		changes: []string{"resource: nothings", "resource: nothings, version: v1"},
	},
}

// ofThisVersion returns the objects of a manifest that the control plane has kinds for, in
// versions that it serves.
func ofThisVersion(t *testing.T, manifest string) string {
	t.Helper()
	var out []string
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		var o struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		if kind, ok := newKinds[o.Kind]; ok && minor < kind.since {
			if kind.before == "" {
				t.Logf("Kubernetes 1.%d has no %s %s", minor, o.APIVersion, o.Kind)
				continue
			}
			document = strings.Replace(document, o.APIVersion, kind.before, 1)
			document = strings.NewReplacer(kind.changes...).Replace(document)
		}
		out = append(out, document)
	}
	return strings.Join(out, "\n---\n")
}
