// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** A text in which the characters of a pattern are escaped as `\uXXXX`, as strings of JSON and YAML may have them. */
export const escaped = (text: string, characters: RegExp): string =>
  text.replace(characters, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
