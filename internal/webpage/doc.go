// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package webpage serves the page to browsers.
//
// What is served is there from the start, in memory: the files as they were
// built, and their compressed forms for those who accept them. Files below
// assets/ have a hash of what is in them in their name and may be kept for
// ever; the others are asked for again each time, and answered with 304 where
// they are the same. All links are relative, so that the page is the same below
// any path, whatever proxies are in front of it; config.json beside it says
// where the API is from there. State is in the query and the fragment, so that
// there is one document and everything unknown is 404.
//
// The policy lets scripts, styles and connections be of the same origin only,
// and nothing inline. It goes with each file, since a worker has that of its
// script.
package webpage
