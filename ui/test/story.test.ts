// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Episode, Story } from '../src/panel/story';

Object.assign(globalThis, { location: { search: '', href: 'http://x/ui/' }, matchMedia: () => ({ matches: false, addEventListener() {} }) });
const { ApiError } = await import('../src/app/api');
const { ended } = await import('../src/app/now');
const { utc } = await import('../src/app/zone');
const { others, Teller } = await import('../src/panel/story');
const { inWords } = await import('../src/time/refusals');
const { pauseAfter, refusal, storyQuery } = await import('../src/panel/told');

utc.value = true;
ended.value = Date.parse('2026-11-21T23:59:59Z');

const path = '/apis/apps/v1/namespaces/shop/deployments/web';
const at = (time: string, day = '21'): string => `2026-11-${day}T${time}Z`;
const episode = (from: string, to: string, more: Partial<Episode> = {}): Episode => ({ kind: 'other', severity: 'info', from, to, title: 'x', entries: [], ...more });
const story = (episodes: Episode[] | null, more: Partial<Story> = {}): Story => ({ resource: 'deployments.apps', kind: 'Deployment', namespace: 'shop', name: 'web', from: at('22:00:00'), to: at('23:00:00'), episodes, objects: 1, versions: 1, ...more });
const tell = (...args: Parameters<typeof story>) => new Teller(story(...args), path);

test('when an episode was', () => {
  const day = tell([episode(at('22:01:02.5'), at('22:03:04')), episode(at('22:05:00'), at('22:05:00.9'))]);
  assert.deepEqual(day.episodes.map((one) => day.span(one)), ['22:01:02–22:03:04', '22:05:00']);
  assert.equal(day.span(episode(at('22:01:02'), at('23:00:00'), { ongoing: true })), 'since 22:01:02');
  const two = tell([episode(at('23:01:02', '20'), at('23:03:04', '20')), episode(at('23:50:00', '20'), at('00:05:00'))]);
  assert.deepEqual(two.episodes.map((one) => two.span(one)), ['2026-11-20 23:01:02–23:03:04', '2026-11-20 23:50:00–2026-11-21 00:05:00']);
});

test('how the begin and the end of an episode are known', () => {
  const told = (from: string, to: string, more: Partial<Episode> = {}) => tell([]).span(episode(at(from), at(to), more));
  assert.equal(told('22:00:00', '22:03:00', { begunBefore: 'story' }), 'before 22:00:00–22:03:00');
  assert.equal(told('22:00:00', '23:00:00', { begunBefore: 'record', ongoing: true }), 'since before 22:00:00 (the record begins there)');
  assert.equal(told('22:05:00', '22:20:00', { notBefore: at('22:01:00'), endNotBefore: at('22:10:00') }), '22:05:00–22:20:00 (not before 22:01:00, its end not before 22:10:00)');
  assert.equal(told('22:05:00', '22:05:00', { notBefore: at('22:01:00'), endNotBefore: at('22:01:00') }), '22:05:00 (not before 22:01:00)');
  assert.equal(told('22:05:00', '22:50:00', { ongoing: true }), 'since 22:05:00 (last observed 22:50:00)');
});

test('what is not known is not told as nothing that has changed', () => {
  const told = (reason: string, from: string, to: string, resource = 'deployments.apps'): string => tell([], { unobserved: [{ resource, reason, from: at(from), to: at(to) }] }).number();
  assert.equal(told('late', '22:00:00', '23:00:00'), 'nothing has changed in that time');
  assert.equal(told('before', '21:00:00', '22:10:00'), 'nothing has changed in that time');
  assert.equal(told('gap', '22:10:00', '22:20:00'), 'nothing is known to have changed in that time');
  assert.equal(told('stopped', '22:00:00', '23:00:00', 'pods'), 'nothing is known to have changed in that time');
  for (const reason of ['stopped', 'silent', 'gap', 'before']) assert.equal(told(reason, '21:59:59.5', '23:00:00.5'), 'nothing is known of that time');
  const two = (...spans: [string, string, string][]): string => tell([], { unobserved: spans.map(([reason, from, to]) => ({ resource: 'deployments.apps', reason, from: at(from), to: at(to) })) }).number();
  assert.equal(two(['before', '21:00:00', '22:10:00'], ['gap', '22:10:00', '23:00:00']), 'nothing is known of that time');
  assert.equal(two(['before', '21:00:00', '22:10:00'], ['gap', '22:20:00', '23:00:00']), 'nothing is known to have changed in that time');
  assert.equal(told('late', '22:00:00', '23:00:01'), 'nothing is known of that time');
});

test('how many episodes there are, and which is the most important', () => {
  assert.deepEqual([tell(null).number(), tell([]).number(), tell([]).main], ['nothing has changed in that time', 'nothing has changed in that time', undefined]);
  const teller = tell([episode(at('22:00:00'), at('22:00:00')), episode(at('22:00:00'), at('22:00:00'), { main: true })]);
  assert.equal(teller.number(), '2 episodes');
  assert.equal(teller.main, teller.episodes[1]);
  assert.equal(new Set(teller.episodes.map(({ key }) => key)).size, 2, 'each has a key of its own');
  assert.equal(tell([episode(at('22:00:00'), at('22:00:00'))]).number(), '1 episode');
});

test('what an entry says', () => {
  const teller = tell([episode(at('22:00:00'), at('22:30:00'))]);
  for (const [entry, want] of [
    [{ what: ['replicas 1 → 2', 'Ready'] }, 'replicas 1 → 2; Ready'],
    [{ what: ['container web exit 1'], lastLog: 'fatal: no' }, 'container web exit 1; last output: fatal: no'],
    [{ what: ['exit 1: fatal: no'], lastLog: 'fatal: no' }, 'exit 1: fatal: no'],
    [{ what: ['x'], count: 3, until: at('22:10:00') }, 'x (3 times, until 22:10:00)'],
    [{ what: ['x'], count: 3 }, 'x (3 times)'],
    [{ what: ['x'], count: 1 }, 'x'],
    [{ what: ['deleted'], inferred: true }, 'deleted (inferred from a list)'],
    [{ what: ['deleted'], inferred: true, notBefore: at('22:09:00') }, 'deleted (not before 22:09:00)'],
  ] as const) assert.equal(teller.what({ ...entry, what: [...entry.what] }), want);
});

test('objects have names and paths', () => {
  const entry = { time: at('22:00:00'), type: 'MODIFIED', resourceVersion: '1', path: '/apis/example.com/v1/namespaces/shop/proxies/p', kind: 'Proxy', namespace: 'shop', name: 'p', what: [] } as const;
  const event = { ...entry, type: 'EVENT', path: '/api/v1/namespaces/shop/events/p.1', kind: 'Thing', name: 't' } as const;
  const teller = tell([episode(at('22:00:00'), at('22:00:00'), { entries: [{ ...entry, what: [] }, { ...event, what: [] }] })]);
  assert.equal(teller.name({ kind: 'Pod', namespace: 'shop', name: 'a' }), 'a');
  assert.equal(teller.name({ kind: 'Pod', namespace: 'other', name: 'a' }), 'other/a');
  assert.equal(teller.name({ kind: 'Node', name: 'n' }), 'n');
  assert.equal(teller.path({ kind: 'Deployment', namespace: 'shop', name: 'web' }), path);
  assert.equal(teller.path(entry), entry.path);
  assert.equal(teller.path({ kind: 'Thing', namespace: 'shop', name: 't' }), '', 'the path of an Event is not that of its object');
  assert.equal(teller.path({ kind: 'Node', name: 'n' }), '/api/v1/nodes/n');
  assert.equal(teller.path({ kind: 'Pod', namespace: 'other', name: 'a' }), '/api/v1/namespaces/other/pods/a');
  assert.equal(teller.path({ kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'a' }), '/api/v1/namespaces/shop/persistentvolumeclaims/a');
  const cause = { kind: 'Pod', name: 'a', field: 'Event', text: 'x' };
  assert.deepEqual([others(cause), others({ ...cause, objects: 1 }), others({ ...cause, objects: 6 })], ['', '', ' and 5 more']);
});

test('what the story does not have', () => {
  const span = { from: at('22:10:00'), to: at('22:20:00') };
  assert.deepEqual(tell([]).notes(), []);
  assert.deepEqual(tell([], {
    notRecorded: ['configmaps', 'secrets'], denied: ['nodes'], leftOut: ['3 objects, over the limit of 1000 (or of 128 MiB)'],
    unobserved: [
      { resource: 'pods', reason: 'before', from: at('22:00:00'), to: at('22:05:00') },
      { resource: 'nodes', reason: 'before', from: at('22:00:00'), to: at('22:06:00') },
      { resource: 'pods', reason: 'gap', ...span }, { resource: 'nodes', reason: 'gap', ...span },
      { resource: 'pods', reason: 'late', from: at('22:30:00'), to: at('22:31:00') },
      { resource: 'pods', reason: 'stopped', from: at('22:40:00'), to: at('22:41:00') },
      { resource: 'pods', reason: 'silent', from: at('23:40:00', '20'), to: at('22:51:00') },
    ],
  }).notes(), [
    'not recorded, so not in the story: configmaps, secrets',
    'left out, because you may not list them now: nodes',
    '3 objects, over the limit of 1000 (or of 128 MiB)',
    'not recorded before 22:05:00 UTC: pods',
    'not recorded before 22:06:00 UTC: nodes',
    'not observed from 22:10:00 to 22:20:00 UTC: pods, nodes',
    'not observed from 22:30:00 to 22:31:00 UTC: pods',
    'not recorded any more from 22:40:00 to 22:41:00 UTC: pods',
    'not known, because the API server did not serve the gateway from 2026-11-20 23:40:00 to 22:51:00 UTC: pods',
  ]);
});

test('which time it is told of', () => {
  const now = { range: null, moment: 0, at: '', deleted: 0, length: 3600 };
  const moment = Date.parse(at('22:30:00'));
  const deleted = Date.parse(at('22:10:00'));
  assert.deepEqual(storyQuery(now), { since: '3600s' }, 'until now');
  assert.deepEqual(storyQuery({ ...now, moment, at: 'rv:7', length: 600 }), { since: '2026-11-21T22:20:00.000Z', until: '2026-11-21T22:30:00.000Z' });
  assert.deepEqual(storyQuery({ ...now, at: 'rv:7' }), { until: 'rv:7' }, 'a resourceVersion whose time is not known');
  assert.deepEqual(storyQuery({ ...now, deleted }), { since: '2026-11-21T21:11:00.000Z', until: '2026-11-21T22:11:00.000Z' }, 'of a deleted object, with what its deletion caused');
  assert.deepEqual(storyQuery({ ...now, deleted, moment: deleted + 5000, at: 'x' }).until, '2026-11-21T22:10:05.000Z', 'but not beyond the shown moment');
  assert.deepEqual(storyQuery({ ...now, moment, at: 'rv:7', range: { from: moment - 0.5, to: moment + 0.5 } }), { since: '2026-11-21T22:29:59.999Z', until: '2026-11-21T22:30:00.001Z' }, 'the selected range');
});

test('it is not told more often than every few seconds, and less often if that takes long', () => {
  assert.deepEqual([0, 100, 500, 2000].map(pauseAfter), [5000, 5000, 5000, 20_000]);
});

test('why there is none', () => {
  for (const [error, want] of [
    [new ApiError(404, inWords('', { kind: 'pods', causes: [{ reason: 'NothingRecorded', field: 'from', message: '2026-11-21T22:00:00.000Z' }, { reason: 'NothingRecorded', field: 'to', message: '2026-11-21T23:00:00.000Z' }] })), 'Nothing is recorded of it from 22:00:00 UTC to 23:00:00 UTC.'],
    [new ApiError(404, 'nothing is recorded: give watchkeeper serve a --data-dir'), 'There is no story: nothing is recorded: give watchkeeper serve a --data-dir'],
    [new ApiError(403, 'pods is forbidden'), 'You may not read this story: pods is forbidden'],
    [new ApiError(503, 'the API server does not answer'), 'The story cannot be told now: the API server does not answer'],
    [new ApiError(400, 'since is not before until'), 'Since is not before until'],
    [new Error('The gateway does not answer.'), 'The gateway does not answer.'],
  ] as const) assert.equal(refusal(error), want);
});
