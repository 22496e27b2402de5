// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import "fmt"

// CheckAssigned returns an error unless every entry of a story is in exactly one episode.
func CheckAssigned(in Input) error {
	t := newTeller(in)
	t.assemble()
	found := map[*entry]int{}
	for _, ep := range t.all {
		for _, e := range ep.entries {
			found[e]++
			if e.episode != ep {
				return fmt.Errorf("%s %s is in another episode than its own", e.Path, e.ResourceVersion)
			}
		}
	}
	for _, e := range t.entries {
		if found[e] != 1 && !(found[e] == 0 && !t.isTarget(e) && (!t.tells(e) || e.episode != nil && t.foreign(e.episode))) {
			return fmt.Errorf("%s %s is in %d episodes", e.Path, e.ResourceVersion, found[e])
		}
	}
	return nil
}
