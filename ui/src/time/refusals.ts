// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The gateway's sentences about what is not recorded, in the words and the time zone of the page. */

import { zoned } from './words';

/** A time of the gateway. One in quotes is a value that was sent to the API server. */
const TIME = /(?<!")\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z(?!")/g;

/** The details of a Status: which resource it is about, and in its causes what is known of it. */
export interface Details {
  group?: string;
  kind?: string;
  causes?: { reason?: string; field?: string; message?: string }[];
}

/** What the causes of the gateway say, by their reason (internal/record/past). `at` has the values of their fields. */
const SENTENCES: Record<string, (of: string, at: Record<string, string | undefined>) => string> = {
  NotObserved: (of, { from, to }) => `Nothing was observed of ${of} from ${from} to ${to}.`,
  BeforeRecord: (of, { from }) => (from ? `The record of ${of} begins at ${from}.` : `Nothing is recorded of ${of}.`),
  // The end of a resource's record is when it was heard of last: the nearest known moment, which the page names, may be later.
  AfterRecord: (of, { resourceVersion, to }) =>
    resourceVersion ? `The resourceVersion ${resourceVersion} of ${of} is not recorded.` : of ? `The record of ${of} does not reach this moment.` : `The recording ends at ${to}.`,
  RecordEnded: (of, { to, why }) => `The record of ${of} ends at ${to}: ${why}.`,
  NothingRecorded: (_, { from, to }) => `Nothing is recorded of it from ${from} to ${to}.`,
};

/** The end of the time in which nothing was observed, if that is why there is no answer; empty otherwise. */
export const gapEnd = ({ causes = [] }: Details = {}): string => (causes[0]?.reason === 'NotObserved' && causes.find(({ field }) => field === 'to')?.message) || '';

const inZone = (text: string): string => text.replace(TIME, (time) => zoned(Date.parse(time)));

/** A message of the gateway or the API server as the page shows it, by the details of its Status if the page has a sentence for them. */
export function inWords(message: string, { group, kind = '', causes = [] }: Details = {}): string {
  const say = SENTENCES[causes[0]?.reason ?? ''];
  if (!say) return inZone(message);
  return say(group ? `${kind}.${group}` : kind, Object.fromEntries(causes.map((cause) => [cause.field, cause.message && inZone(cause.message)])));
}
