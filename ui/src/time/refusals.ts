// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The gateway's sentences about what is not recorded, in the words and the time zone of the page. */

import { zoned } from './words';

/** A time of the gateway. One in quotes is a value that was sent to the API server. */
const TIME = /(?<!")\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z(?!")/g;

const STATE = String.raw`(?:\d+ \()?(\S+Z)\)?`;
/** The forms, and what they say. */
const FORMS: [RegExp, string][] = [
  [RegExp(`^in a gap of the recorded history: .*; (\\S+) were not observed between ${STATE} and ${STATE}: .*`), 'Nothing was observed of $1 from $2 to $3.'],
  [RegExp(`^before the recorded history: .*; (\\S+) are recorded from ${STATE} to .*`), 'The record of $1 begins at $2.'],
  [/^before the recorded history: no (\S+) are recorded$/, 'Nothing is recorded of $1.'],
  [/^after the recorded history: .* is after the end of the recording, (\S+)$/, 'The recording ends at $1.'],
  [RegExp(`^after the recorded history: (\\d+); (\\S+) are .* to ${STATE}$`), 'The resourceVersion $1 of $2 is not recorded: the record ends at $3.'],
  [/^not recorded: (\S+) are recorded until (\S+): (.*)$/, 'The record of $1 ends at $2: $3.'],
  [/^nothing is recorded of \S+ "[^"]*" between (\S+) and (\S+)$/, 'Nothing is recorded of it from $1 to $2.'],
];

/** A message of the gateway or the API server as the page shows it. */
export function inWords(message: string): string {
  const form = FORMS.find(([pattern]) => pattern.test(message));
  return (form ? message.replace(...form) : message).replace(TIME, (time) => zoned(Date.parse(time)));
}
