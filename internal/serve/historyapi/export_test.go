// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import "testing"

// SetMaxScanned sets how many entries of the log are read for a page with a filter, until
// the returned function is called.
func SetMaxScanned(n int) (reset func()) {
	before := maxScanned
	maxScanned = n
	return func() { maxScanned = before }
}

// SetStoryLimits sets the limits of a story, until reset.
func SetStoryLimits(objects, versions, events int) (reset func()) {
	o, v, e := maxObjects, maxVersions, maxEvents
	maxObjects, maxVersions, maxEvents = objects, versions, events
	return func() { maxObjects, maxVersions, maxEvents = o, v, e }
}

// SetMaxListed changes maxListed for a test.
func SetMaxListed(t *testing.T, n int) {
	before := maxListed
	maxListed = n
	t.Cleanup(func() { maxListed = before })
}

// SetMaxRowEvents changes maxRowEvents for a test.
func SetMaxRowEvents(t *testing.T, n int) {
	before := maxRowEvents
	maxRowEvents = n
	t.Cleanup(func() { maxRowEvents = before })
}

// SetMaxCrossed changes maxCrossed until the returned function is called.
func SetMaxCrossed(n int) (reset func()) {
	before := maxCrossed
	maxCrossed = n
	return func() { maxCrossed = before }
}
