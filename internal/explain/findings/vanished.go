// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/workload"
)

// A counted object is a controller whose status has a number of Pods.
type counted struct {
	resource string
	object   *scan.Object
	pods     int
}

// addCounted adds a controller of Pods, by its text.
func (s *State) addCounted(r kube.Resource, o *scan.Object, exist string) {
	i := max(strings.LastIndex(o.JSON, `"status":{`), 0)
	if n, _ := strconv.Atoi(number(o.JSON[i:], exist)); n > 0 {
		s.counted = append(s.counted, counted{r.GroupResource(), o, n})
	}
}

// ControllerOf returns the UID of an object's controller, by its text; "" if it has none.
func ControllerOf(o *scan.Object) (uid string) {
	_, owners, ok := strings.Cut(o.JSON, `"ownerReferences":[`)
	if !ok {
		return ""
	}
	owners, _, _ = strings.Cut(owners, "]")
	if strings.Count(owners, "{") == 1 && strings.Contains(owners, `"controller":true`) { // as usual
		_, uid, _ = strings.Cut(owners, `"uid":"`)
		uid, _, _ = strings.Cut(uid, `"`)
		return uid
	}
	var meta metav1.ObjectMeta
	_ = json.Unmarshal([]byte("["+owners+"]"), &meta.OwnerReferences)
	if owner := metav1.GetControllerOfNoCopy(&meta); owner != nil {
		uid = string(owner.UID)
	}
	return uid
}

// vanished finds controllers of which Pods were deleted that their status still has: a controller
// that acts makes others, or writes its status. It has to last for a minute.
func (s *State) vanished(g *group) {
	if !s.AllPods || s.Deleted == nil {
		return
	}
	deleted := map[string]map[string]time.Time{} // by namespace and UID of the controller
	for _, c := range s.counted {
		n, at := s.podsOf[c.object.UID], s.at(c.resource)
		if n >= c.pods || !at.Equal(s.at("pods")) {
			continue
		}
		one := &incomplete{Ref{Resource: c.resource, Kind: c.object.Kind, Key: c.object.Key}, workload.Read(c.object)}
		since := s.written(one, "")
		if one.light.Metadata.DeletionTimestamp != nil || at.Sub(since) < minAge {
			continue
		}
		namespace := c.object.Key.Namespace()
		if _, asked := deleted[namespace]; !asked {
			deleted[namespace] = s.Deleted(namespace)
		}
		last, ok := deleted[namespace][c.object.UID]
		if !ok || at.Sub(last) < minAge {
			continue // when is not known
		}
		workload := s.workload(one.ref, one.light.Metadata.OwnerReferences)
		severity := s.severity(workload)
		if n == 0 {
			severity = api.SeverityCritical
		}
		f := g.of(workload, "", severity)
		f.Objects = append(f.Objects, one.ref)
		f.from(last)
		f.Title = fmt.Sprintf("%d of %d Pods exist, and its controller does not act", n, c.pods)
	}
}
