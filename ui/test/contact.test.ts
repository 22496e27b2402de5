// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Phase, Status } from '../src/data/protocol';

Object.assign(globalThis, { location: { search: '', href: 'http://x/ui/' }, matchMedia: () => ({ matches: false, addEventListener() {} }) });
const { absence, after } = await import('../src/app/contact');

/** Since when the state is unknown after each report: the phase, the time of the report, that of the last contact, and the cause. */
function lost(...reports: [phase: Phase, at: number, since?: number, text?: string][]): number[] {
  let contact = { phase: 'connecting' as Phase, last: 0, lost: 0 };
  return reports.map(([phase, at, since = at, text = '']) => {
    const status: Status = { phase, text, since };
    contact = after(contact, status, at);
    return contact.lost;
  });
}

test('the state is unknown from the last contact until the next', () => {
  assert.deepEqual(lost(['connecting', 10], ['catching up', 11], ['live', 12], ['stale', 30, 25], ['stale', 40, 25], ['catching up', 50], ['live', 51]), [0, 0, 0, 25, 25, 25, 0]);
});

test('a report without a time of the last contact', () => {
  assert.deepEqual(lost(['live', 12], ['stale', 30, NaN], ['live', 31], ['stale', 40, 0]), [0, 30, 0, 40]);
  assert.deepEqual(lost(['stale', 30, NaN]), [30]);
});

test('credentials that are not accepted any more end the contact, and missing rights do not', () => {
  let contact = after({ phase: 'connecting', last: 0, lost: 0 }, { phase: 'live', text: '', since: 10 }, 10);
  assert.equal(after(contact, { phase: 'denied', text: 'Forbidden', since: 20 }, 20).lost, 0);
  contact = after(contact, { phase: 'denied', text: 'Unauthorized', since: 20, code: 401 }, 20);
  assert.equal(contact.lost, 20);
  contact = after(contact, { phase: 'denied', text: 'Unauthorized', since: 30, code: 401 }, 30);
  assert.equal(contact.lost, 20);
  assert.equal(after(contact, { phase: 'live', text: '', since: 40 }, 40).lost, 0);
  assert.equal(after({ phase: 'connecting', last: 0, lost: 0 }, { phase: 'denied', text: 'Unauthorized', since: 5, code: 401 }, 5).lost, 0, 'before the first login there is nothing to lose');
});

test('return from the past without contact', () => {
  assert.deepEqual(lost(['live', 12], ['past', 20], ['connecting', 90], ['connecting', 91, 91, 'refused'], ['catching up', 95], ['live', 96]), [0, 0, 0, 20, 20, 0]);
  assert.deepEqual(lost(['live', 12], ['stale', 30, 25], ['past', 40], ['connecting', 91, 91, 'refused']), [0, 25, 0, 25]);
  assert.deepEqual(lost(['past', 20], ['connecting', 91, 91, 'refused']), [0, 91], 'never live');
});

test('return from the past with contact', () => {
  assert.deepEqual(lost(['live', 12], ['past', 20], ['connecting', 30], ['catching up', 31], ['live', 32]), [0, 0, 0, 0, 0]);
});

test('a moment that is not recorded has no counts, and the page says why', async () => {
  const { Past } = await import('../src/data/past');
  const { Rows } = await import('../src/data/rows');
  const reported = (answer: () => Promise<Response>): Promise<Status> => {
    globalThis.fetch = answer;
    return new Promise((resolve) => void new Past('http://x/', '10m', 0, new Rows(), () => {}, resolve));
  };
  const refuse = (status: number, message: string) => reported(async () => Response.json({ message }, { status }));
  const gap = await refuse(410, 'in a gap of the recorded history');
  assert.equal(gap.text, 'in a gap of the recorded history');
  assert.equal(absence(gap, true), 'nothing is recorded at this moment');
  const dead = await reported(() => Promise.reject(new TypeError('Failed to fetch')));
  assert.equal(dead.text, 'The gateway does not answer.');
  const { getJSON } = await import('../src/app/api');
  await assert.rejects(getJSON('/api/v1/pods'), { message: 'The gateway does not answer.' });
  assert.equal(absence(dead, true), 'the gateway does not answer');
  assert.equal(absence(await refuse(403, 'pods is forbidden'), true), 'this moment is not available');
  assert.equal(absence(gap, false), '', 'the live state has notices of its own');
  assert.equal(absence({ phase: 'past', text: '', since: 1 }, true), '');
});

test('a moment in the future', async () => {
  const { awayWords } = await import('../src/time/words');
  assert.equal(absence({ phase: 'failed', text: 'in the future', since: 1, code: 400 }, true, true), 'this moment is in the future');
  assert.equal(awayWords(3600_000, 1000_000, false), 'in the future');
  assert.equal(awayWords(990_000, 1000_000, false), '10s ago');
  assert.equal(awayWords(1000_001, 1000_000, false), '0s ago', 'clocks differ');
});

test('nothing is announced before the counts are known', async () => {
  const { announcement } = await import('../src/shell/live');
  const { filled, Fixture } = await import('./fixture');
  assert.equal(announcement(new Fixture().cluster, 'connecting', ''), '');
  assert.equal(announcement(filled(1, 2).cluster, 'live', ''), 'live: 1 node, 2 pods, 0 failing, 0 pending');
  assert.equal(announcement(filled(1, 0).cluster, 'stale', '', { namespaces: null, omitted: 0, incomplete: false, nodes: null, pods: { why: '', namespaces: [] } }), 'stale: 1 node');
  assert.equal(announcement(filled(1, 2).cluster, 'failed', 'nothing is recorded at this moment'), 'nothing is recorded at this moment');
});

test('a moment of the past says that there is no contact', async () => {
  const { Past } = await import('../src/data/past');
  const { Rows } = await import('../src/data/rows');
  globalThis.fetch = async () => Response.json({ metadata: {}, rows: [] });
  const silence = { words: '', since: 0 };
  const reports: Status[] = [];
  const past: InstanceType<typeof Past> = await new Promise((resolve) => {
    const one: InstanceType<typeof Past> = new Past('http://x/', '10m', 0, new Rows(), () => {}, (status) => (reports.push(status), resolve(one)), silence);
  });
  Object.assign(silence, { words: 'The gateway cannot be reached.', since: 25 });
  past.again();
  Object.assign(silence, { words: '', since: 30 });
  past.again();
  assert.deepEqual(reports.map(({ phase, text }) => [phase, text]), [['past', ''], ['past', 'The gateway cannot be reached.'], ['past', '']]);
});

test('a read that the server puts off is made again, a few times, and a write is not', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { request } = await import('../src/app/api');
  let asked = 0;
  const puttingOff = (times: number, headers: Record<string, string> = { 'Retry-After': '1' }): void => {
    asked = 0;
    globalThis.fetch = async () => (asked++ < times ? Response.json({ message: 'busy' }, { status: 503, headers }) : Response.json({}));
  };
  const code = async (init?: RequestInit & { headers?: Record<string, string> }): Promise<number> => {
    const answer = request('http://x/api', init);
    for (let passed = 0; passed < 10; passed++) {
      await new Promise(setImmediate);
      t.mock.timers.tick(1000);
    }
    return (await answer).status;
  };
  puttingOff(2);
  assert.deepEqual([await code(), asked], [200, 3]);
  puttingOff(100);
  assert.deepEqual([await code(), asked], [503, 4]);
  puttingOff(1, { 'Retry-After': '600' });
  assert.deepEqual([await code(), asked], [503, 1]);
  puttingOff(1, {});
  assert.deepEqual([await code(), asked], [503, 1]);
  puttingOff(1);
  assert.deepEqual([await code({ method: 'POST' }), asked], [503, 1]);
  puttingOff(100);
  const stop = new AbortController();
  const ended = assert.rejects(request('http://x/api', { signal: stop.signal }), { name: 'AbortError' });
  await new Promise(setImmediate);
  stop.abort();
  t.mock.timers.tick(1000);
  await ended;
  assert.equal(asked, 1);
});
