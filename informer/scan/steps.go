// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

// A Step is a part of a path. Exactly one of its kinds is set: a step without Each,
// Element and Where is the member with the name Member.
type Step struct {
	// Member is the name of a member; with Where, that of the member with the value.
	Member string
	// Each selects each element of an array: [*].
	Each bool
	// Element selects the element at Index: [0].
	Element bool
	Index   int
	// Where selects the first element whose Member has this Value.
	Where bool
	Value string
}

// ParseSteps parses paths separated by commas, as [ParseRows] does, and returns the text
// and the steps of each.
//
// Errors wrap [ErrPath].
func ParseSteps(text string) (paths []string, steps [][]Step, err error) {
	parsed, err := parsePaths(text)
	if err != nil {
		return nil, nil, err
	}
	for _, path := range parsed {
		var all []Step
		for _, s := range path.steps {
			all = append(all, Step{
				Member: s.name, Each: s.kind == stepEach, Element: s.kind == stepIndex, Index: s.index,
				Where: s.kind == stepWhere, Value: s.value,
			})
		}
		paths, steps = append(paths, path.text), append(steps, all)
	}
	return paths, steps, nil
}
