// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package untranslated keeps kubectl's packages from loading translations of their texts, of
// which the program shows none: with them, each start of a command took a third longer. It is
// imported for that alone. Go initializes it before the packages that load them, as
// [i18n.SetLoadTranslationsFunc] demands.
package untranslated

import "k8s.io/kubectl/pkg/util/i18n"

func init() {
	if err := i18n.SetLoadTranslationsFunc(func() error { return nil }); err != nil {
		panic(err)
	}
}
