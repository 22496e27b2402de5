// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package recording

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// hasWord reports whether a text contains a name as a whole word, and where. It is
// simpler than the code under test.
func hasWord(text, name string) (string, bool) {
	letter := func(i int) bool {
		return i >= 0 && i < len(text) && strings.IndexByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", text[i]) >= 0
	}
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return "", false
		}
		i += from
		if !letter(i-1) && !letter(i+len(name)) {
			return text[max(0, i-80):min(len(text), i+len(name)+40)], true
		}
		from = i + 1
	}
}

// pieces are the words of a text.
func pieces(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return r < 0x80 && !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", r)
	})
}

// unpacked returns the lines of a recording about objects, without columns and
// discovery.
func unpacked(t *testing.T, file []byte) string {
	t.Helper()
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text, err := z.DecodeAll(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, `{"columns"`) && (!strings.HasPrefix(line, `{"document"`) || strings.Contains(line, "customresourcedefinitions/")) &&
			!strings.HasPrefix(line, `{"stream"`) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// eachVersion calls f for all versions of all objects of a store.
func eachVersion(t *testing.T, s *history.Store, f func(o *scan.Object)) {
	t.Helper()
	for _, res := range s.Resources() {
		st := s.Streams(res)[0]
		for o, err := range st.List(t.Context(), st.Span().From.RV, "", "") {
			if err != nil {
				t.Fatal(err)
			}
			f(o)
		}
		for e, err := range st.Events(t.Context(), st.Span().From.RV, st.Span().To.RV) {
			if err != nil {
				t.Fatal(err)
			}
			f(e.Object)
		}
	}
}

// links returns the references of each object in a store, with numbers in place of
// names: its owners, its Node, its volumes, the object that an Event is about.
func links(t *testing.T, s *history.Store) []string {
	t.Helper()
	type ref struct{ Kind, Namespace, Name string }
	numbers := map[ref]int{}
	var objects []*scan.Object
	eachVersion(t, s, func(o *scan.Object) {
		r := ref{o.Kind, o.Key.Namespace(), o.Key.Name()}
		if _, ok := numbers[r]; !ok {
			numbers[r] = len(numbers) + 1
		}
		objects = append(objects, o)
	})
	var out []string
	for _, o := range objects {
		var v struct {
			Metadata struct {
				Namespace       string
				OwnerReferences []ref
			}
			Spec struct {
				NodeName, VolumeName, ServiceName string
				Volumes                           []struct {
					ConfigMap             struct{ Name string }
					Secret                struct{ SecretName string }
					PersistentVolumeClaim struct{ ClaimName string }
				}
				ScaleTargetRef ref
			}
			InvolvedObject ref
		}
		if err := json.Unmarshal([]byte(o.JSON), &v); err != nil {
			t.Fatal(err)
		}
		ns := v.Metadata.Namespace
		refs := []ref{{"Node", "", v.Spec.NodeName}, {"PersistentVolume", "", v.Spec.VolumeName}, {"Service", ns, v.Spec.ServiceName}, v.InvolvedObject,
			{v.Spec.ScaleTargetRef.Kind, ns, v.Spec.ScaleTargetRef.Name}}
		for _, vol := range v.Spec.Volumes {
			refs = append(refs, ref{"ConfigMap", ns, vol.ConfigMap.Name}, ref{"Secret", ns, vol.Secret.SecretName}, ref{"PersistentVolumeClaim", ns, vol.PersistentVolumeClaim.ClaimName})
		}
		for _, owner := range v.Metadata.OwnerReferences {
			refs = append(refs, ref{owner.Kind, ns, owner.Name}, ref{owner.Kind, "", owner.Name})
		}
		text := fmt.Sprint(o.Kind, o.RV, ":")
		for _, r := range refs {
			text += fmt.Sprint(" ", numbers[r]) // 0 for a missing object
		}
		out = append(out, text)
	}
	slices.Sort(out) // objects are in the order of their names, which differ
	return out
}

// checkNoNames exports a store with pseudonyms, and checks that the export has none of
// the names, and that references lead to objects as before.
func checkNoNames(t *testing.T, from *history.Store, names map[string]bool, documents []Document) {
	t.Helper()
	x := exporter(from)
	x.Documents = func(context.Context) ([]Document, error) { return documents, nil }
	var file bytes.Buffer
	if err := x.Export(t.Context(), &file, Selection{Resources: from.Resources(), From: at(0), To: at(1e9), Pseudonyms: true}); err != nil {
		t.Fatal(err)
	}
	text := unpacked(t, file.Bytes())
	words := map[string]bool{}
	for _, word := range pieces(text) {
		words[word] = true
	}
	for name := range names {
		if slices.ContainsFunc(pieces(name), func(word string) bool { return !words[word] }) {
			continue // a quick check
		}
		if where, ok := hasWord(text, name); ok {
			t.Errorf("%q can be read: …%s…", name, where)
		}
	}
	to := openStore(t)
	if _, _, err := Import(t.Context(), bytes.NewReader(file.Bytes()), to, 0); err != nil {
		t.Fatal(err)
	}
	before, after := links(t, from), links(t, to)
	if len(before) == 0 || len(before) != len(after) {
		t.Fatalf("%d versions, were %d", len(after), len(before))
	}
	// The numbers depend on the order of keys, so only found and missing references
	// can be compared.
	count := func(all []string) (found, missing int) {
		for _, l := range all {
			_, refs, _ := strings.Cut(l, ":")
			for _, n := range strings.Fields(refs) {
				if n == "0" {
					missing++
				} else {
					found++
				}
			}
		}
		return found, missing
	}
	f1, m1 := count(before)
	f2, m2 := count(after)
	if f1 == 0 || f1 != f2 || m1 != m2 {
		t.Errorf("%d references are found and %d missing, before it was %d and %d", f2, m2, f1, m1)
	}
}

// TestNoNamesOfDemo: the recording of a real cluster has no names after the export.
func TestNoNamesOfDemo(t *testing.T) {
	f, err := os.Open("../../../demo/incident.wkr")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	from := openStore(t)
	_, documents, err := Import(t.Context(), f, from, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	eachVersion(t, from, func(o *scan.Object) {
		for _, name := range []string{o.Key.Name(), o.Key.Namespace()} {
			if name != "" && !slices.Contains(openNames, name) {
				names[name] = true
			}
		}
	})
	if len(names) < 100 {
		t.Fatalf("only %d names", len(names))
	}
	checkNoNames(t, from, names, documents)
}

// cluster has objects of many kinds, which refer to each other in many ways. Names
// that have to be replaced are between ‹ and ›.
const cluster = `
nodes {"kind":"Node","apiVersion":"v1","metadata":{"name":"‹rack7.dc-a›","labels":{"kubernetes.io/hostname":"‹rack7›","kubernetes.io/os":"linux","team.example.org/‹web-prod›":"yes"}},"status":{"addresses":[{"type":"Hostname","address":"‹host-seven›"},{"type":"InternalIP","address":"10.0.0.7"}],"volumesInUse":["kubernetes.io/csi/d^‹pvc-0ab›"],"allocatable":{"cpu":"7","pods":"110"}}}
namespaces {"kind":"Namespace","apiVersion":"v1","metadata":{"name":"‹web-prod›","labels":{"kubernetes.io/metadata.name":"‹web-prod›"}}}
namespaces {"kind":"Namespace","apiVersion":"v1","metadata":{"name":"‹7›"}}
replicasets {"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{"name":"‹cart›-5d9c8","namespace":"‹web-prod›","labels":{"pod-template-hash":"5d9c8"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"‹cart›","uid":"u1"}]}}
pods {"kind":"Pod","apiVersion":"v1","metadata":{"name":"‹cart›-5d9c8-x2x4z","generateName":"‹cart›-5d9c8-","namespace":"‹web-prod›","labels":{"pod-template-hash":"5d9c8","app":"‹cart›","kind":"‹web-prod›","uid":"‹cart›"},"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"‹cart›-5d9c8-x2x4z\"},\"spec\":{\"x\":\"a\\n‹cart›\\tb\"}}","note":"at \\n‹cart› %2F‹cart›"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"‹cart›-5d9c8"}],"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","fieldsV1":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"k:{\"name\":\"‹cart›\"}":{".":{}}}}}]},"spec":{"nodeName":"‹rack7.dc-a›","serviceAccountName":"‹Cart_Robot›","imagePullSecrets":[{"name":"‹quay-pull›"}],"hostname":"‹cart-host›","priorityClassName":"‹gold›","runtimeClassName":"‹kata›","containers":[{"name":"‹cart›","image":"registry.example.com/‹cart›:1.2","resources":{"limits":{"cpu":"7","memory":"7Gi"}},"envFrom":[{"configMapRef":{"name":"‹cart-env›"}},{"secretRef":{"name":"‹cart-keys›"}}],"env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"‹cart-more›","key":"a"}}},{"name":"B","valueFrom":{"secretKeyRef":{"name":"‹cart-less›","key":"b"}}},{"name":"DB","value":"postgres://orders-db.‹web-prod›.svc:5432"}]}],"volumes":[{"name":"v","configMap":{"name":"‹cart-files›"}},{"name":"w","secret":{"secretName":"‹cart-tls›"}},{"name":"d","persistentVolumeClaim":{"claimName":"‹cart-data›"}},{"name":"p","projected":{"sources":[{"secret":{"name":"‹cart-proj›"}},{"configMap":{"name":"‹cart-proj-cm›"}}]}}],"affinity":{"podAffinity":{"x":[{"namespaces":["‹far-away›"]}]}}},"status":{"phase":"Running","nominatedNodeName":"‹rack8›","startTime":"2026-01-07T07:07:07Z","message":"\u001b[31m‹cart›-5d9c8-x2x4z is down"}}
persistentvolumeclaims {"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"name":"‹cart-data›","namespace":"‹web-prod›","annotations":{"volume.kubernetes.io/selected-node":"‹rack9›"}},"spec":{"volumeName":"‹pvc-0ab›","storageClassName":"‹fast-ssd›","resources":{"requests":{"storage":"7Gi"}}}}
persistentvolumes {"kind":"PersistentVolume","apiVersion":"v1","metadata":{"name":"‹pvc-0ab›"},"spec":{"claimRef":{"kind":"PersistentVolumeClaim","apiVersion":"v1","namespace":"‹web-prod›","name":"‹cart-data›","uid":"u9"},"capacity":{"storage":"7Gi"}}}
configmaps {"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"‹cart-files›","namespace":"‹web-prod›"},"data":{"‹cart-files›.conf":"server ‹cart›\n‹web-prod›","kind":"‹cart›","apiVersion":"‹web-prod›/v1","uid":"‹cart›","resourceVersion":"‹cart›","name":"‹cart-files›","data":"x","limits":"{\"tenants\":{\"‹cart›\":{\"pods\":7}}}"},"binaryData":{"b":"«cart-files says hello»","c":"//8="}}
secrets {"kind":"Secret","apiVersion":"v1","metadata":{"name":"‹cart-tls›","namespace":"‹web-prod›","annotations":{"kubernetes.io/service-account.name":"‹Cart_Robot›"}},"data":{"a":"«cart-tls»"}}
ingresses {"kind":"Ingress","apiVersion":"networking.k8s.io/v1","metadata":{"name":"‹front-door›","namespace":"‹web-prod›"},"spec":{"ingressClassName":"‹haproxy›","tls":[{"hosts":["‹shop.acme.org›"],"secretName":"‹door-cert›"}],"rules":[{"host":"*.‹acme.org›","http":{"paths":[{"path":"/‹cart›","backend":{"service":{"name":"‹cart-svc›","port":{"number":7}}}}]}}]}}
rolebindings {"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"‹team:A_b›","namespace":"‹web-prod›"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"‹alice@acme›"},{"kind":"ServiceAccount","name":"‹Cart_Robot›","namespace":"‹web-prod›"},{"kind":"Group","name":"system:masters"}],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"‹Read:Only›"}}
roles {"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"‹Read:Only›","namespace":"‹web-prod›"},"rules":[{"apiGroups":[""],"resources":["pods"],"resourceNames":["‹cart-one›"],"verbs":["get"]}]}
horizontalpodautoscalers {"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2","metadata":{"name":"‹cart-hpa›","namespace":"‹web-prod›"},"spec":{"scaleTargetRef":{"kind":"ReplicaSet","apiVersion":"apps/v1","name":"‹cart›-5d9c8"},"metrics":[{"type":"Resource","resource":{"name":"cpu"}}]}}
cronjobs {"kind":"CronJob","apiVersion":"batch/v1","metadata":{"name":"‹nightly›","namespace":"‹web-prod›"},"status":{"active":[{"kind":"Job","name":"‹nightly-29384710›","namespace":"‹web-prod›"}]}}
events {"kind":"Event","apiVersion":"v1","metadata":{"name":"‹cart›-5d9c8-x2x4z.17ab","namespace":"‹web-prod›"},"involvedObject":{"kind":"Pod","apiVersion":"v1","namespace":"‹web-prod›","name":"‹cart›-5d9c8-x2x4z","fieldPath":"spec.containers{‹cart›}"},"source":{"component":"kubelet","host":"‹rack7.dc-a›"},"message":"Failed to pull \"registry.example.com/‹cart›:1.2\" on ‹rack7.dc-a›; see my-‹cart›, ‹cart›_x, ‹team:A_b› and alice: ‹alice@acme›."}
events {"kind":"Event","apiVersion":"v1","metadata":{"name":"‹rack7.dc-a›.9f","namespace":"default"},"involvedObject":{"kind":"Node","name":"‹rack7.dc-a›","uid":"‹rack7.dc-a›"}}
leases {"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"‹rack7.dc-a›","namespace":"kube-node-lease"},"spec":{"holderIdentity":"‹rack7.dc-a›_8f3c","renewTime":"2026-01-07T07:07:07.000007Z"}}
widgets {"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"‹sprocket›","namespace":"‹web-prod›"},"spec":{"targetRef":{"kind":"Pod","name":"‹aimed-at›"},"cluster":{"secretName":"‹widget-key›"}},"status":{"nodes":{"‹rack7.dc-a›":{"ok":true}}}}
customresourcedefinitions {"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","conversion":{"webhook":{"clientConfig":{"service":{"namespace":"‹web-prod›","name":"‹converter›"}}}}}}
`

// TestNoNames: objects of many kinds with unusual names have no names after the export.
func TestNoNames(t *testing.T) {
	names := map[string]bool{}
	for part := range strings.SplitSeq(cluster, "‹") {
		if name, _, ok := strings.Cut(part, "›"); ok && name != "7" { // checked below
			names[name] = true
		}
	}
	plain := strings.NewReplacer("‹", "", "›", "").Replace(cluster)
	for strings.Contains(plain, "«") {
		before, rest, _ := strings.Cut(plain, "«")
		text, after, _ := strings.Cut(rest, "»")
		plain = before + base64.StdEncoding.EncodeToString([]byte(text)) + after
	}
	from := openStore(t)
	all := map[string][]*scan.Object{}
	for line := range strings.Lines(strings.TrimSpace(plain)) {
		resource, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		o, err := scan.ParseObject(strings.Replace(text, `"metadata":{`, `"metadata":{"resourceVersion":"70",`, 1))
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		o.Columns, o.Row = `[{"name":"Name","type":"string"}]`, fmt.Sprintf(`"cells":[%q,"7/7","of %s"]`, o.Key.Name(), o.Key.Name())
		all[resource] = append(all[resource], o)
	}
	for resource, objects := range all {
		gv := objects[0].APIVersion
		group, version, ok := strings.Cut(gv, "/")
		if !ok {
			group, version = "", gv
		}
		st, err := from.Stream(kube.Resource{Group: group, Version: version, Name: resource})
		if err != nil {
			t.Fatal(err)
		}
		item, err := scan.ParseTemplate(fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{}}`, objects[0].Kind, gv))
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(objects, func(a, b *scan.Object) int { return strings.Compare(string(a.Key), string(b.Key)) })
		if err := st.Begin(history.Form{ListKind: objects[0].Kind + "List", Item: item}, slices.Values(objects), 100, at(100)); err != nil {
			t.Fatal(err)
		}
	}
	definition := Document{Path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com", Type: "application/json",
		Body: json.RawMessage(`{"metadata":{"name":"widgets.example.com","uid":"u","generation":3,"annotations":{"cert-manager.io/inject-ca-from":"web-prod/converter"}},"spec":{"conversion":{"webhook":{"clientConfig":{"service":{"name":"converter"}}}},"versions":[{"name":"v1","selectableFields":[{"jsonPath":".spec.color"}]}]}}`)}
	checkNoNames(t, from, names, []Document{definition})

	// These parts must not change.
	var file bytes.Buffer
	x := exporter(from)
	x.Documents = func(context.Context) ([]Document, error) { return []Document{definition}, nil }
	if err := x.Export(t.Context(), &file, Selection{Resources: from.Resources(), From: at(0), To: at(1e9), Pseudonyms: true}); err != nil {
		t.Fatal(err)
	}
	text := unpacked(t, file.Bytes())
	for _, part := range []string{
		`"cpu":"7"`, `"memory":"7Gi"`, `"storage":"7Gi"`, `"startTime":"2026-01-07T07:07:07Z"`, `"renewTime":"2026-01-07T07:07:07.000007Z"`,
		`"kind":"Role"`, `"apiVersion":"rbac.authorization.k8s.io/v1"`, `"apiVersion":"example.com/v1"`, `"name":"widgets.example.com"`, `"name":"system:masters"`,
		`"address":"10.0.0.7"`, `"resource":{"name":"cpu"}`, `"kubernetes.io/os":"linux"`, `"phase":"Running"`, `"component":"kubelet"`, `"resourceVersion":"70"`,
		`"f:labels":{"f:app":{}}`, `"generation":3`, `"jsonPath":".spec.color"`, `"c":"//8="`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is gone", part)
		}
	}
	if strings.Contains(text, `"name":"7"`) || strings.Contains(text, `"cells":["7"`) {
		t.Error("the name 7 can be read")
	}
	for _, o := range strings.Split(text, "\n") {
		var l line
		if strings.HasPrefix(o, `{"object"`) && json.Unmarshal([]byte(o), &l) == nil && strings.Contains(o, `"kind":"Secret"`) {
			var secret struct{ Data map[string][]byte }
			if err := json.Unmarshal(l.Object.JSON, &secret); err != nil || len(secret.Data["a"]) == 0 || strings.Contains(string(secret.Data["a"]), "cart") {
				t.Errorf("%v: %s", err, secret.Data)
			}
		}
	}
}

// TestEventsOfSelectedObjects: a label selector also selects the Events about an object:
// Events have no labels.
func TestEventsOfSelectedObjects(t *testing.T) {
	f, err := os.Open("../../../demo/incident.wkr")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	from, to := openStore(t), openStore(t)
	if _, _, err := Import(t.Context(), f, from, 0); err != nil {
		t.Fatal(err)
	}
	sel := Selection{Resources: []kube.Resource{{Version: "v1", Name: "events"}, pods}, From: at(0), To: at(1e9)}
	if sel.Labels, err = labels.Parse("app=cart"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Import(t.Context(), bytes.NewReader(export(t, from, sel)), to, 0); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	eachVersion(t, to, func(o *scan.Object) {
		if kinds[o.Kind]++; !strings.HasPrefix(o.Key.Name(), "cart-") {
			t.Errorf("%s %s", o.Kind, o.Key)
		}
	})
	if kinds["Pod"] == 0 || kinds["Event"] == 0 {
		t.Errorf("there are %v", kinds)
	}
}
