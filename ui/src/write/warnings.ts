// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Reads the Warning headers of an answer (RFC 9111, 5.5), in which the API server says what it thinks of a request. */
export const warningsOf = (header: string | null): string[] =>
  [...(header ?? '').matchAll(/\b299 \S+ "((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text.replace(/\\(.)/g, '$1'));
