// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// A reporter for run.mjs: a line for each test that failed, with the reason.

import { basename } from 'node:path';

const LENGTH = 600;

/** The reason of a failure: the error that the test threw, in one line. */
function reason({ cause, message }) {
  const text = String(cause?.message ?? cause ?? message).replace(/\s+/g, ' ').trim();
  return text.length > LENGTH ? `${text.slice(0, LENGTH)}…` : text;
}

export default async function* failures(source) {
  for await (const { type, data } of source) {
    if (type !== 'test:fail' || data.details.error.failureType === 'subtestsFailed') continue;
    yield `${basename(data.file ?? '')}: ${data.name}: ${reason(data.details.error)}\n`;
  }
}
