// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package yamlapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// maxExpanded bounds a document after its aliases are expanded: the bytes of its texts, and
// nodeCost for each value. The parser bounds only how many values come from aliases.
const (
	maxExpanded = 4 << 20
	nodeCost    = 4
)

var errMore = errors.New("there is more than one document")

// decode returns the object of a text as JSON, as kubectl makes it of a file (resource.Builder).
// It refuses what kubectl would drop without a word: the first of two equal keys, and any other
// document.
func decode(text []byte) ([]byte, error) {
	if object := bytes.TrimSpace(text); bytes.HasPrefix(object, []byte("{")) && json.Valid(object) {
		return object, nil // to kubectl, it is JSON
	}
	var found []byte
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, sentence(err)
		}
		if err := check(document); err != nil {
			return nil, err
		}
		var object runtime.RawExtension
		if err := utilyaml.NewYAMLToJSONDecoder(bytes.NewReader(document)).Decode(&object); err != nil && !errors.Is(err, io.EOF) {
			return nil, sentence(err)
		}
		if len(object.Raw) == 0 || string(object.Raw) == "null" {
			continue
		}
		if found != nil {
			return nil, errMore
		}
		found = object.Raw
	}
	if found == nil {
		return nil, errors.New("there is no object")
	}
	return found, nil
}

// check returns an error for a document with two equal keys in an object, and for one that is
// too large after its aliases are expanded.
func check(document []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(document))
	// To a strict parser, a key that is also in what << merges is there twice.
	d.SetStrict(!bytes.Contains(document, []byte("<<")))
	var value, more any
	if err := d.Decode(&value); err != nil && !errors.Is(err, io.EOF) {
		return sentence(err)
	}
	// After "...", for example.
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return errMore
	}
	if expanded(value, maxExpanded) < 0 {
		return fmt.Errorf("the object has more than %d MiB when its aliases are expanded", maxExpanded>>20)
	}
	return nil
}

// expanded returns what is left of a budget after a value; it is negative if that is too large.
func expanded(value any, left int) int {
	left -= nodeCost
	switch v := value.(type) {
	case string:
		return left - len(v)
	case []any:
		for i := 0; i < len(v) && left >= 0; i++ {
			left = expanded(v[i], left)
		}
	case map[any]any:
		for key, member := range v {
			if left = expanded(member, expanded(key, left)); left < 0 {
				break
			}
		}
	}
	return left
}

// sentence returns an error of the parser without the names of the functions that returned it.
func sentence(err error) error {
	text := err.Error()
	for _, lead := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:\n  "} {
		text = strings.TrimPrefix(text, lead)
	}
	first, _, _ := strings.Cut(text, "\n")
	return errors.New(first)
}
