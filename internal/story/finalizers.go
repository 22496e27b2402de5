// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

// heldUpBy returns the objects in a Namespace that is being deleted whose finalizers its
// condition names.
func (t *teller) heldUpBy(namespace *thing, from, to time.Time) (inside []*thing) {
	if namespace.kind != "Namespace" {
		return nil
	}
	named := ""
	for _, span := range t.spansOf(namespace, "NamespaceFinalizersRemaining", "True") {
		named += span.condition.Message + " "
	}
	for _, th := range t.things {
		i := slices.IndexFunc(th.states, (*state).terminating)
		if th.key.Namespace() != namespace.key.Name() || i < 0 || !within(th.states[i].at, from, to) || !th.gone.IsZero() && th.gone.Sub(th.states[i].at) <= maxFinalizing {
			continue
		}
		if slices.ContainsFunc(th.states[i].look().Metadata.Finalizers, func(f string) bool { return strings.Contains(named, f) }) {
			inside = append(inside, th)
		}
	}
	return inside
}

// finalizersOf names objects and their finalizers, which it adds as causes.
func (t *teller) finalizersOf(ep *episode, all []*thing) string {
	var texts []string
	for _, th := range all {
		i := slices.IndexFunc(th.states, (*state).terminating)
		names := strings.Join(th.states[i].look().Metadata.Finalizers, ", ")
		ep.said = addCause(ep.said, api.Cause{Kind: th.kind, Namespace: th.key.Namespace(), Name: th.key.Name(), Field: "metadata.finalizers", Text: names})
		text := fmt.Sprintf("%s %s (finalizer %s", th.kind, th.key.Name(), names)
		if !th.gone.IsZero() {
			text += ", gone after " + took(th.states[i].at, th.gone)
		}
		texts = append(texts, text+")")
	}
	return list(texts, 2, "object")
}
