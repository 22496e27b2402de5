// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// What is not known: in the words and the time zone of the page, with the nearest moments that are.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { knownSpans, nearestKnown, timeOf, type Recorded } from '../src/time/known';

Object.assign(globalThis, { location: { search: '', href: 'http://x/ui/' }, matchMedia: () => ({ matches: false, addEventListener() {} }) });
const { ended } = await import('../src/app/now');
const { utc } = await import('../src/app/zone');
const { apiError } = await import('../src/app/api');
const { inWords } = await import('../src/time/refusals');

utc.value = true;
ended.value = Date.parse('2026-11-21T23:59:59Z');

test('the details of a Status have the words and the times of the page', () => {
  const [T1, T2] = ['2026-11-21T09:09:58.123Z', '2026-11-21T09:53:48.851Z'];
  for (const [reason, at, want] of [
    ['NotObserved', { from: T1, to: T2 }, 'Nothing was observed of deployments.apps from 09:09:58 UTC to 09:53:48 UTC.'],
    ['NotObserved', { from: '2026-11-20T09:09:58.123Z', to: T2 }, 'Nothing was observed of deployments.apps from 2026-11-20 09:09:58 UTC to 09:53:48 UTC.'],
    ['BeforeRecord', { from: T1 }, 'The record of deployments.apps begins at 09:09:58 UTC.'],
    ['BeforeRecord', {}, 'Nothing is recorded of deployments.apps.'],
    ['AfterRecord', { to: T2, resourceVersion: '99999' }, 'The resourceVersion 99999 of deployments.apps is not recorded.'],
    ['AfterRecord', { to: T2 }, 'The record of deployments.apps does not reach this moment.'],
    ['RecordEnded', { to: T2, why: `the API server has not answered since ${T2}` }, 'The record of deployments.apps ends at 09:53:48 UTC: the API server has not answered since 09:53:48 UTC.'],
    ['NothingRecorded', { from: T1, to: T2 }, 'Nothing is recorded of it from 09:09:58 UTC to 09:53:48 UTC.'],
    ['FieldValueInvalid', { spec: 'x' }, 'said'],
  ] as const) {
    const known = Object.entries(at);
    const causes = known.length ? known.map(([field, message]) => ({ reason, field, message })) : [{ reason }];
    assert.equal(inWords('said', { group: 'apps', kind: 'deployments', causes }), want);
  }
  assert.equal(inWords('said', { causes: [{ reason: 'AfterRecord', field: 'to', message: T2 }] }), 'The recording ends at 09:53:48 UTC.');
});

test('other messages have the times of the page', () => {
  for (const [said, want] of [
    ['nothing is recorded of pods "shop/x"; pods were not observed between 2026-11-21T09:53:48.868Z and 2026-11-21T09:54:00.000Z', 'nothing is recorded of pods "shop/x"; pods were not observed between 09:53:48 UTC and 09:54:00 UTC'],
    // Values that were sent stay as they are, and all other words.
    ['spec.startTime: Invalid value: "2026-11-21T09:53:48.868Z": it is in the past', 'spec.startTime: Invalid value: "2026-11-21T09:53:48.868Z": it is in the past'],
    ['pods "x" not found', 'pods "x" not found'],
    ['', ''],
  ]) assert.equal(inWords(said), want);
});

test('an error of a wrong type says where and why, without the object', async () => {
  const said = async (message: string) => (await apiError(new Response(JSON.stringify({ kind: 'Status', code: 422, message }), { status: 422 }))).message;
  const why = 'json: cannot unmarshal number 2.5 into Go struct field DeploymentSpec.spec.replicas of type int32';
  const secret = JSON.stringify(JSON.stringify({ kind: 'Secret', data: { password: 'c2VjcmV0' }, metadata: { annotations: { quoted: '"\\"' } } }));
  assert.equal(await said(` "" is invalid: patch: Invalid value: ${secret}: ${why}`), why);
  assert.equal(await said(`[patch: Invalid value: ${secret}: ${why}, a, Invalid value: ${secret}: b]`), `[patch: ${why}, a, b]`);
  const value = 'Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0';
  assert.equal(await said(value), value);
});

const point = (minute: number) => ({ resourceVersion: String(100 * minute), time: at(minute) });
const at = (minute: number): string => `2026-11-21T09:${String(minute).padStart(2, '0')}:00.000Z`;
const ms = (minute: number): number => Date.parse(at(minute));
const recorded = (resource: string, from: number, to: number, gaps: [number, number][] = [], moreGaps = 0): Recorded =>
  ({ resource, epochs: [{ span: { from: point(from), to: point(to) }, gaps: gaps.map(([a, b]) => ({ from: point(a), to: point(b) })).reverse(), moreGaps }] });
const now = { now: at(50), recording: { state: 'on' }, upstream: { answers: true } };
const nearest = (minute: number, resources: Recorded[], index: Parameters<typeof knownSpans>[1] = now): number[] =>
  nearestKnown(ms(minute), resources.map((one) => knownSpans(one, index))).map((time) => (time - ms(0)) / 60_000);

test('the nearest moments at which all resources are known', () => {
  const pods = recorded('pods', 10, 40, [[20, 30]]);
  assert.deepEqual(nearest(25, [pods]), [20, 30]);
  assert.deepEqual(nearest(15, [pods]), [15], 'a known one');
  assert.deepEqual(nearest(5, [pods]), [10], 'before the record');
  assert.deepEqual(nearest(45, [pods]), [45], 'what has not changed since is known');
  assert.deepEqual(nearest(45, [pods], { ...now, upstream: { answers: false } }), [40], 'but not while the API server does not answer');
  assert.deepEqual(nearest(45, [pods], { now: at(50), recording: { state: 'failed' } }), [40], 'nor after recording has stopped');
  assert.deepEqual(nearest(55, [pods], { now: at(50), recording: { state: 'ended' } }), [50], 'after the end of a recording');
  // The gaps of two resources overlap, and one ends where another begins.
  assert.deepEqual(nearest(25, [pods, recorded('nodes', 10, 40, [[18, 22], [29, 33]])]), [18, 33]);
  assert.deepEqual(nearest(25, [pods, recorded('nodes', 32, 40)]), [32], 'nothing before');
  assert.deepEqual(nearest(15, [recorded('pods', 10, 40, [[20, 30]], 3)]), [20], 'older gaps are not listed');
  const twice: Recorded = { resource: 'pods', epochs: [...recorded('', 30, 40).epochs, ...recorded('', 5, 20).epochs] };
  assert.deepEqual(nearest(25, [twice]), [20, 30], 'between two epochs');
});

test('a resourceVersion has the time of its gap', () => {
  const all = [recorded('nodes', 10, 40), recorded('pods', 10, 40, [[20, 30]])];
  assert.equal(timeOf(2500n, all), ms(25));
  assert.equal(timeOf(5n, all), 0);
  assert.equal(timeOf(9000n, all), Infinity);
});
