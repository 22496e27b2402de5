// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance has the rules of the Kubernetes LIST/GET/WATCH API and
// runs them against two endpoints: an API server (want) and a gateway in front
// of it (got). A rule sends the same requests to both, checks the API server's
// answers, so that the rule cannot hold vacuously, and compares the answers
// byte for byte. [Run] runs all rules and prints a table. Only tests import
// this package.
//
// Sections are those of docs/kubernetes-watch.md. A rule whose endpoints differ
// by design has the number of a line in docs/semantics.md, "Differences from
// the API server", and must indeed differ.
//
// [Env.Setup] creates the fixture: objects that do not change while the rules run
// (fixture.yaml), and custom resources (crds.yaml). A rule that changes objects does
// so in its own namespace, since many rules run at the same time.
//
// # Rule files
//
// Rules are entries of txtar archives in the folder rules, one file per theme:
//
//	# Source: where the rules come from.
//
//	-- WatchPaths --
//	# A description of the rule.
//	sync $configmaps
//
//	each path => names
//	  $configmaps => $all
//	  /api/v1/namespaces => conf conf-b
//	> GET $path?watch=1&timeoutSeconds=1&resourceVersion=0
//	> Accept: application/json
//	< 200
//	added $names
//
// The comment is followed by the head, which runs first. Blocks follow, with
// blank lines between them: all blocks run at the same time, once per
// combination of the rows of their tables; the statements of a block run in
// turn. In the head, code marks a rule written in Go, differs N one whose endpoints
// differ, slow one that waits long and needs no fixture, and source names where this
// rule comes from.
//
// $name and ${name|query|base64} are variables. Tables (each), let, keep and
// other statements set them, besides the constants in script.go. Backquotes
// keep spaces at the ends of a value; - is an empty list.
//
// Statements are:
//
//	> METHOD PATH          a request to both endpoints, with > headers, body,
//	                       as nobody, over HTTP/2, tries N (the ages in two
//	                       answers may differ), and the expectations below;
//	                       method WEBSOCKET asks for an upgrade
//	keep NAME MEMBER       keeps continue or resourceVersion of a list
//	negotiate C/NAME …     requests with one Accept; answers LIST GET WATCH
//	pages PATH QUERY       follows continue tokens from $rv to the end
//	sync PATH              waits until both endpoints have reached the last
//	                       write, and sets $rv and $exact
//	fresh RESOURCE NAME …  creates objects in a new namespace; sets $fresh, $space
//	write METHOD PATH BODY writes to the API server; sets $written, its RV
//	open PATH              opens a watch, with > headers, mask, every-bookmark
//	events A, B            reads and compares as many events; sets $last, the
//	                       RV of the last one
//	until A                reads and compares up to an event
//	to-end A, B            reads and compares to the clean end
//	frame N has|lacks|rv-from X   checks one of the frames last read
//	wait DURATION
//
// Expectations are checked on the API server's answer: < STATUS [or STATUS],
// < Header: value (none: the header is absent), status CODE REASON MESSAGE (a
// Status; - is no reason, … the end of a prefix), kind, items, length, events,
// added, has, lacks, starts (a regular expression), indented, compact,
// one-line, envelope (protobuf), columns-once, clean-end, rv-from, messages.
// mask NAME names a part of both answers that may differ; see mask.go.
package conformance
