// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package archtest tests the architecture: which package may import which, that each
// has one package doc, and that the informer exports what testdata/informer.api
// lists. It contains only tests.
package archtest
