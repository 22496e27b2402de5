// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package archtest tests the architecture: which package may import which, that each
// has one package doc, that the informer and testcluster export what testdata/*.api
// list, and that the tests named in docs exist. It contains only tests.
package archtest
