// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Control characters except line ends and tabs, and those that turn the direction of a text: as `internal/cli/termtext` has them. */
export const UNSAFE = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A text of the cluster as it is shown: no character of it changes how another one reads. */
export const plain = (text: string): string => text.replace(UNSAFE, '\ufffd');
