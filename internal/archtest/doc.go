// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the tests of the architecture: which package may
// import which, and that each has one package doc. There is nothing in it but
// tests.
package archtest
