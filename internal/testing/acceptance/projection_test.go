// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// TestProjections lists and watches projections of two labels of real objects.
func TestProjections(t *testing.T) {
	inStage(t, quiet)
	ns := namespace(t)
	configMap(t, ns, "a", "red")
	configMap(t, ns, "b", "blue")
	path := gw.URL + "/api/v1/namespaces/" + ns + "/configmaps?"
	const fields = "metadata.labels.color"
	query := url.Values{"fields": {fields}, "labelSelector": {"color"}}.Encode()
	type object struct {
		Kind, APIVersion string
		Metadata         map[string]any
		Data             map[string]string
	}
	check := func(o object, name, color string) {
		t.Helper()
		labels, _ := o.Metadata["labels"].(map[string]any)
		if o.Kind != "ConfigMap" || o.APIVersion != "v1" || o.Metadata["name"] != name || o.Metadata["uid"] == "" ||
			labels["color"] != color || len(o.Metadata) != 5 || o.Data != nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
	// A list with RV unset is consistent, so it has both.
	var list struct {
		Kind     string
		Metadata struct{ ResourceVersion string }
		Items    []object
	}
	text := curl(t, "-H", "Accept: application/json", path+query)
	if err := json.Unmarshal([]byte(text), &list); err != nil || list.Kind != "ConfigMapList" || len(list.Items) != 2 {
		t.Fatalf("%v %s", err, text)
	}
	check(list.Items[0], "a", "red")
	check(list.Items[1], "b", "blue")

	frames := curlWatch(t, path+query+"&watch=1&resourceVersion="+list.Metadata.ResourceVersion)
	kubectl(t, "-n", ns, "annotate", "configmap", "a", "unseen=1") // which causes no event
	kubectl(t, "-n", ns, "label", "configmap", "a", "color=green", "--overwrite")
	kubectl(t, "-n", ns, "label", "configmap", "b", "color-")
	for _, want := range [][3]string{{"MODIFIED", "a", "green"}, {"DELETED", "b", "blue"}} {
		f, ok := <-frames
		if !ok || f.Type != want[0] {
			t.Fatalf("%s, want %s", f.text, want)
		}
		var e struct{ Object object }
		if err := json.Unmarshal([]byte(f.text), &e); err != nil {
			t.Fatal(err)
		}
		check(e.Object, want[1], want[2])
	}
	if text := curl(t, "-H", "Accept: application/yaml", path+query); !strings.Contains(text, `"code": 406`) {
		t.Errorf("as YAML: %s", text)
	}
	if text := curl(t, path+"fields=a..b"); !strings.Contains(text, `"code": 400`) {
		t.Errorf("a bad path: %s", text)
	}
}
