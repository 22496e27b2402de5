// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/wI2L/jsondiff"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A Patch is a JSON Patch (RFC 6902).
type Patch = jsondiff.Patch

// A Change is the difference between two versions of an object.
type Change struct {
	// Patch turns the earlier version into the later one; unless Comparer.Noise
	// is set, both without noise. It is empty if one of them is nil, or with Comparer.Brief.
	Patch Patch
	// Summary are a few phrases, the most important first.
	Summary []string
	// By are the managers that wrote what changed, according to managedFields.
	By []Manager
	// Noise are the kinds of noise that changed, in order.
	Noise []string
	// OnlyNoise is set if nothing but noise changed, OnlyStatus if nothing but noise and
	// the status did.
	OnlyNoise, OnlyStatus bool
	// OnlyWritten is set if nothing but managedFields changed, and what follows from that:
	// somebody wrote, and the values are as before.
	OnlyWritten bool
	// OnlyCounters is set if, besides what accompanies them, only numbers of replicas or
	// Pods in the status changed.
	OnlyCounters bool
}

// A Comparer compares versions of objects. It parses a version once if it is
// compared with its predecessor and then with its successor. One goroutine may
// use it.
type Comparer struct {
	// Noise includes the noise in patches.
	Noise bool
	// Brief leaves out patches, which takes half the time.
	Brief bool

	known [2]*version // compared last
}

// A version is a parsed version of an object.
type version struct {
	o       *scan.Object
	tree    map[string]any // without noise
	noise   noise
	entries []any // of managedFields
}

// read parses an object, unless it was parsed last.
func (c *Comparer) read(o *scan.Object) (*version, error) {
	for _, v := range c.known {
		if v != nil && v.o == o {
			return v, nil
		}
	}
	tree, err := decode(o)
	if err != nil {
		return nil, err
	}
	v := &version{o: o, tree: tree, entries: elements(tree, "metadata", "managedFields")}
	v.noise = quiet(tree)
	return v, nil
}

// SameSpec reports whether two versions of an object differ at most in their status, and in noise.
func (c *Comparer) SameSpec(before, after *scan.Object) bool {
	d, err := c.Between(before, after)
	return err == nil && (d.OnlyStatus || d.OnlyNoise)
}

// Between compares two versions of an object. One of them may be nil: the
// object did not exist. It fails on invalid JSON.
func (c *Comparer) Between(before, after *scan.Object) (*Change, error) {
	old, err := c.read(before)
	if err != nil {
		return nil, err
	}
	now, err := c.read(after)
	if err != nil {
		return nil, err
	}
	c.known = [2]*version{old, now}
	out := &Change{By: writers(old.entries, now.entries)}
	if before == nil || after == nil {
		out.Summary = []string{"created"}
		if event := now.event(); event != "" {
			out.Summary = []string{event}
		}
		if after == nil {
			out.Summary = []string{"deleted"}
			if event := old.event(); event != "" {
				out.Summary = append(out.Summary, event)
			}
		} else {
			out.By = creators(now)
		}
		return out, nil
	}
	out.Noise = differing(old.noise, now.noise)
	out.OnlyWritten = len(out.By) > 0 && !slices.ContainsFunc(out.Noise, func(kind string) bool { return kind != noiseManaged && kind != noiseGeneration })
	var plain Patch
	if !c.Brief {
		if plain, err = diff(old.tree, now.tree); err != nil {
			return nil, err
		}
	}
	if out.OnlyNoise = equal(old.tree, now.tree); !out.OnlyNoise {
		out.OnlyWritten = false
		out.Summary, out.OnlyCounters = summarize(old.tree, now.tree)
		switch event := now.event(); event {
		case "":
		case old.event():
			out.Summary = append([]string{event}, out.Summary...)
		default: // what else differs, such as the version of the object, follows from that
			out.Summary = []string{event}
		}
		out.OnlyStatus = !slices.ContainsFunc(names(old.tree, now.tree), func(name string) bool {
			return name != "status" && !equal(old.tree[name], now.tree[name])
		})
		if changed := leaves(nil, nil, old.tree, now.tree, nil); len(changed) > 0 && before.UID == after.UID {
			out.By = authors(old, now, changed)
		}
		out.Noise = slices.DeleteFunc(out.Noise, func(kind string) bool { return kind == noiseVersion })
	}
	if out.Patch = plain; c.Noise && !c.Brief {
		out.Patch, err = diffWhole(before, after)
	}
	return out, err
}

// diffWhole compares two objects including noise.
func diffWhole(before, after *scan.Object) (Patch, error) {
	old, err := decode(before)
	if err != nil {
		return nil, err
	}
	now, err := decode(after)
	if err != nil {
		return nil, err
	}
	return diff(old, now)
}

// maxAligned limits the length of lists whose elements are aligned in a patch,
// which takes quadratic time.
const maxAligned = 500

// diff compares two decoded objects.
func diff(before, after map[string]any) (Patch, error) {
	var options []jsondiff.Option
	if max(longest(before), longest(after)) <= maxAligned {
		options = append(options, jsondiff.LCS())
	}
	return jsondiff.CompareWithoutMarshal(before, after, options...)
}

// longest returns the length of the longest list in a value.
func longest(value any) int {
	n := 0
	switch v := value.(type) {
	case map[string]any:
		for _, x := range v {
			n = max(n, longest(x))
		}
	case []any:
		n = len(v)
		for _, x := range v {
			n = max(n, longest(x))
		}
	}
	return n
}

// decode parses an object; numbers keep their text.
func decode(o *scan.Object) (map[string]any, error) {
	if o == nil {
		return nil, nil
	}
	d := json.NewDecoder(strings.NewReader(o.JSON))
	d.UseNumber()
	var tree map[string]any
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("%s at %d: %w", o.Key, o.RV, err)
	}
	return tree, nil
}

// Quiet returns an object without noise.
func Quiet(object []byte) (map[string]any, error) {
	tree, err := decode(&scan.Object{JSON: string(object)})
	if err == nil {
		quiet(tree)
	}
	return tree, err
}
