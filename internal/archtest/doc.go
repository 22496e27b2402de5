// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the tests of the architecture: which package may
// import which, that each has one package doc, and what the informer exports,
// which testdata/informer.api has. There is nothing in it but tests.
package archtest
