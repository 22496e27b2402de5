// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** A synthetic history for pictures of the strip: an hour with a rollout, a gap, and the start of the recording. */

import type { Counts, History, ObjectChange, Page } from '../src/time/history';

export const made: History = {
  async state() {
    return { on: true, reason: '', first: Date.now() - 3000_000, end: 0 };
  },
  async counts(from, to) {
    const bins = 180;
    const size = (to - from) / bins;
    const day = (t: number): string => new Date(t).toISOString();
    const one: Counts['resources'][number] = {
      resource: 'pods', added: [], modified: [], deleted: [],
      spans: [{ from: day(from + 28 * size), to: day(to) }], gaps: [{ from: day(from + 96 * size), to: day(from + 108 * size) }],
    };
    for (let i = 0; i < bins; i++) {
      const known = i >= 28 && (i < 96 || i >= 108);
      const noise = Math.abs(Math.sin(i * 12.9898) * 43758.5453) % 1;
      const burst = 90 * Math.exp(-(((i - 66) / 4) ** 2)) + 60 * Math.exp(-(((i - 140) / 3) ** 2));
      one.modified.push(known ? Math.round(6 + 10 * noise + burst) : 0);
      one.added.push(known ? Math.round(2 * noise + burst * 0.4) : 0);
      one.deleted.push(known ? Math.round(2 * noise + burst * 0.35) : 0);
    }
    return { from: day(from), to: day(to), binSeconds: size / 1000, bins, resources: [one] };
  },
  async changes(): Promise<Page<ObjectChange>> {
    return { items: [], more: '' };
  },
  async versions() {
    return { items: [], more: '' };
  },
  async last() {
    return undefined;
  },
  async version() {
    return undefined;
  },
  async difference() {
    return { from: { time: '' }, to: { time: '' }, items: [] };
  },
};
