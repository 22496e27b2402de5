// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"errors"
	"fmt"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// stringMaps are the objects whose members are texts, wherever they are in an object.
var stringMaps = map[string]bool{"nodeSelector": true, "matchLabels": true}

// writable returns why the values of a path cannot be changed; nil if they can.
func writable(path string) error {
	_, steps, err := scan.ParseSteps(path)
	if err != nil {
		return err
	}
	return writableSteps(steps[0])
}

func writableSteps(steps []scan.Step) error {
	for _, s := range steps {
		if s.Each {
			return errors.New("the column has several values of each object")
		}
	}
	switch steps[0].Member {
	case "status":
		return errors.New("the status is written by controllers")
	case "apiVersion", "kind":
		return fmt.Errorf("%s is fixed", steps[0].Member)
	case "metadata":
		if len(steps) == 3 && (steps[1].Member == "labels" || steps[1].Member == "annotations") {
			return nil
		}
		return errors.New("of the metadata, only labels and annotations can be changed")
	}
	return nil
}

// isText reports whether the values of a path are texts, whatever they look like.
func isText(steps []scan.Step) bool {
	if len(steps) < 2 {
		return false
	}
	above := steps[len(steps)-2]
	switch above.Member {
	case "labels", "annotations":
		return len(steps) > 2 && steps[len(steps)-3].Member == "metadata"
	case "data", "stringData", "binaryData":
		return len(steps) == 2
	}
	return stringMaps[above.Member]
}
