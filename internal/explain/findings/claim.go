// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// claimsFound finds PersistentVolumeClaims that are not bound. One that waits for its first
// consumer, as an Event says, is no failure.
func (s *State) claimsFound(g *group) {
	for _, c := range s.claims {
		severity := api.SeverityWarning
		switch {
		case c.Status.Phase == corev1.ClaimLost:
			severity = api.SeverityCritical
		case c.Status.Phase != corev1.ClaimPending || c.DeletionTimestamp != nil || s.at("persistentvolumeclaims").Sub(c.CreationTimestamp.Time) < minAge:
			continue
		}
		warning := s.warning(string(c.UID))
		waits := s.lastAbout(string(c.UID), func(e *event) bool {
			return e.reason == "WaitForFirstConsumer" && !e.last.Before(c.CreationTimestamp.Time)
		})
		if waits != nil && (warning == nil || waits.last.After(warning.last)) {
			severity = api.SeverityInfo
		}
		f := g.of(refOf("PersistentVolumeClaim", c.Namespace, c.Name), "", severity)
		f.Objects = append(f.Objects, f.Subject)
		f.from(c.CreationTimestamp.Time)
		f.Title = string(c.Status.Phase)
		if f.say(warning.says()); warning == nil {
			f.say(waits.says())
		}
	}
}
