// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package webpage serves the page to browsers.
//
// All files are in memory from the start: as they were built, and compressed for
// clients that accept that. Files below assets/ have a hash of their contents in
// their name and may be cached forever. The others are revalidated each time,
// and answered with 304 if unchanged. All links are relative, so the page works
// below any path and behind any proxy; config.json next to it has the relative
// paths of the API. The state of the page is in the query, so there is one
// document, and unknown paths are 404.
//
// The Content-Security-Policy allows scripts, styles and connections from the
// same origin only, and nothing inline. Each file has it, since a worker has the
// policy of its script.
package webpage
