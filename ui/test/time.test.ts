// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EventMark } from '../src/time/events';
import type { Change, Counts, History, ObjectChange } from '../src/time/history';
import { stacked, tickText, unknownParts } from '../src/time/plot';

const at = (s: number): string => new Date(s * 1000).toISOString();
const counts: Counts = {
  from: at(1000), to: at(1060), binSeconds: 10, bins: 6,
  resources: [
    { resource: 'pods', added: [0, 1, 0, 0, 2, 0], modified: [0, 5, 0, 0, 0, 0], deleted: [0, 0, 0, 0, 1, 0], spans: [{ from: at(1010), to: at(1060) }], gaps: [{ from: at(1025), to: at(1030) }] },
    { resource: 'nodes', added: [0, 0, 0, 0, 0, 0], modified: [0, 2, 0, 0, 0, 0], deleted: [0, 0, 0, 0, 0, 0], spans: [], gaps: [] },
  ],
};

test('the bars are stacked: the first series is highest', () => {
  const [x, all, some, modified] = stacked(counts);
  assert.deepEqual(x, [1005, 1015, 1025, 1035, 1045, 1055]);
  assert.deepEqual(all, [0, 8, 0, 0, 3, 0]);
  assert.deepEqual(some, [0, 8, 0, 0, 2, 0]);
  assert.deepEqual(modified, [0, 7, 0, 0, 0, 0]);
});

test('time before the recording and in gaps is unknown', () => {
  assert.deepEqual(unknownParts(counts), [{ from: 1000_000, to: 1010_000, gap: false }, { from: 1025_000, to: 1030_000, gap: true }]);
  assert.deepEqual(unknownParts(counts, 'pods', 1050_000).at(-1), { from: 1050_000, to: Infinity, gap: true }, 'and after contact was lost');
  assert.equal(unknownParts({ ...counts, resources: [{ ...counts.resources[0], resource: 'configmaps' }], denied: ['pods'] }).length, 2, 'Pods are recorded, but may not be listed');
  assert.deepEqual(unknownParts({ ...counts, resources: [] }), [{ from: 1000_000, to: 1060_000, gap: false }]);
});

test('ticks show the units that differ', () => {
  const noon = new Date(2026, 5, 7, 12, 30, 15).getTime();
  assert.deepEqual([tickText(noon, 5), tickText(noon, 300), tickText(noon, 21_600), tickText(noon, 86_400)], ['12:30:15', '12:30', '06-07 12:30', '06-07']);
});

test('a step goes to the previous or the next change', async () => {
  Object.assign(globalThis, { location: { search: '', href: 'http://x/ui/' }, matchMedia: () => ({ matches: false, addEventListener() {} }) });
  const { nextChange } = await import('../src/time/playback');
  const moments = [1012, 1014, 1018, 1041, 1047, 1063, 1068]; // the last two after the counts
  const history = {
    // Pages of one, of which each second is empty.
    changes: async (from: number, to: number, _limit: number, _signal: AbortSignal, _resources: string[], more = '') => {
      const all = moments.filter((m) => m * 1000 >= from && m * 1000 < to).reverse().map((m) => ({ time: at(m) }) as ObjectChange);
      const i = Number(more);
      return { items: i % 2 ? all.slice((i - 1) / 2, (i + 1) / 2) : [], more: i < 2 * all.length ? String(i + 1) : '' };
    },
  } as unknown as History;
  const step = (from: number, way: -1 | 1): Promise<number> => nextChange(history, counts, from * 1000, way, new AbortController().signal);
  assert.equal(await step(1014, 1), 1018_000);
  assert.equal(await step(1018, 1), 1041_000);
  assert.equal(await step(1041, -1), 1018_000);
  assert.equal(await step(1014, -1), 1012_000);
  assert.equal(await step(1012, -1), 0);
  assert.equal(await step(1047, 1), 1063_000);
  assert.equal(await step(1063, 1), 1068_000);
  assert.equal(await step(1068, 1), 0);
  assert.equal(await step(1070, -1), 1068_000);
  assert.equal(await step(1068, -1), 1063_000);
  assert.equal(await step(1063, -1), 1047_000);
});

test('a step of an object goes to its previous or next change', async () => {
  const { nextVersion } = await import('../src/time/playback');
  const moments: [number, Change['type']][] = [[1000, 'INITIAL'], [1012, 'MODIFIED'], [1014, 'FOLDED'], [1018, 'MODIFIED'], [1041, 'DELETED']];
  const asked: string[] = [];
  const history = {
    // Pages of two.
    versions: async (path: string, more: string, _signal: AbortSignal, within: { since?: string; until?: string }) => {
      asked.push(path);
      const all = moments.filter(([m]) => (!within.since || at(m) >= within.since) && (!within.until || at(m) <= within.until)).reverse();
      const items = all.slice(Number(more), Number(more) + 2).map(([m, type]) => ({ type, time: at(m), resourceVersion: String(m) }) as Change);
      return { items, more: Number(more) + 2 < all.length ? String(Number(more) + 2) : '' };
    },
  } as unknown as History;
  const step = async (from: number, way: -1 | 1): Promise<string | undefined> => (await nextVersion(history, '/api/v1/nodes/a', from * 1000, way, new AbortController().signal))?.resourceVersion;
  assert.deepEqual([await step(2000, -1), await step(1041, -1), await step(1018, -1), await step(1012, -1), await step(1000, -1)], ['1041', '1018', '1012', '1000', undefined]);
  assert.deepEqual([await step(900, 1), await step(1000, 1), await step(1012, 1), await step(1018, 1), await step(1041, 1)], ['1000', '1012', '1018', '1041', undefined]);
  assert.deepEqual([...new Set(asked)], ['/api/v1/nodes/a']);
});

test('a step of an object stops at each of several changes with one time', async () => {
  const { nextVersion } = await import('../src/time/playback');
  const items = [['13', 2000], ['12', 1000], ['9', 1000], ['8', 1000], ['7', 900]].map(([rv, m]) => ({ type: 'MODIFIED', time: at(m as number), resourceVersion: rv }) as Change);
  const history = { versions: async () => ({ items, more: '' }) } as unknown as History;
  const step = async (rv: string, from: number, way: -1 | 1): Promise<string | undefined> => (await nextVersion(history, '/p', from * 1000, way, new AbortController().signal, rv))?.resourceVersion;
  assert.deepEqual([await step('13', 2000, -1), await step('12', 1000, -1), await step('9', 1000, -1), await step('8', 1000, -1)], ['12', '9', '8', '7']);
  assert.deepEqual([await step('7', 900, 1), await step('8', 1000, 1), await step('9', 1000, 1), await step('12', 1000, 1)], ['8', '9', '12', '13']);
  assert.deepEqual([await step('', 1000, -1), await step('', 1000, 1)], ['7', '13'], 'a moment without a resourceVersion is after all of its time');
});

test('a change that was not observed is shown when the board is known again', async () => {
  const { momentOf, showChange } = await import('../src/time/playback');
  const { mode } = await import('../src/app/state');
  const point = (s: number) => ({ resourceVersion: String(s), time: at(s) });
  const epochs = (end: number) => [{ span: { from: point(100), to: point(900) }, gaps: [{ from: point(400), to: point(end) }] }];
  globalThis.fetch = (async () => Response.json({ now: at(900), recording: { state: 'on' }, upstream: { answers: true }, resources: [{ resource: 'pods', epochs: epochs(502) }, { resource: 'nodes', epochs: epochs(501) }] })) as typeof fetch;
  const change = { resourceVersion: '401', time: at(500), notBefore: at(400), inferred: true };
  assert.equal(momentOf(change), at(500));
  await showChange(change);
  assert.deepEqual(mode.value, { at: at(502), time: 502_000, speed: 0 });
  await showChange({ ...change, notBefore: undefined, inferred: undefined });
  assert.deepEqual(mode.value, { at: 'rv:401', time: 500_000, speed: 0 });
  mode.value = null;
});

test('reading the first page again keeps the pages after it', async () => {
  const { refreshed, versionKey } = await import('../src/time/history');
  const page = (more: string, ...rvs: string[]) => ({ items: rvs.map((resourceVersion) => ({ type: 'MODIFIED', resourceVersion }) as Change), more });
  const rvs = (of: { items: Change[] }): string => of.items.map((item) => item.resourceVersion).join(' ');
  const old = page('token', '5', '4', '3', '2', '1');
  const again = refreshed(old, page('first', '6', '5', '4'), versionKey);
  assert.deepEqual([rvs(again), again.more], ['6 5 4 3 2 1', 'token']);
  assert.deepEqual(rvs(refreshed(old, page('first', '9', '8', '7'), versionKey)), '9 8 7', 'without a common version the pages do not join');
  assert.deepEqual(rvs(refreshed(old, page('', '6', '5'), versionKey)), '6 5', 'the first page is the last');
  assert.deepEqual(rvs(refreshed(null, page('first', '6', '5'), versionKey)), '6 5');
  const folded = (resourceVersion: string, oldest: string) => ({ type: 'FOLDED', resourceVersion, folded: { count: 2, oldest: { resourceVersion: oldest, time: '' } } }) as Change;
  assert.equal(versionKey(folded('9', '7')), versionKey(folded('10', '7')), 'a group that grows keeps its key');
});

test('a Warning on the strip outlives any number of other Events', async () => {
  const { byBar, EventMarks, eventWords } = await import('../src/time/events');
  // A Warning, and a Normal Event each second since then.
  const all = Array.from({ length: 3500 }, (_, s) => ({ type: 'ADDED', time: at(1000 + s), name: `web.${s}`, summary: [s ? 'Normal Pulled: image' : 'Warning BackOff: restarting'] }) as ObjectChange).reverse();
  const asked: number[] = [];
  const history = {
    changes: async (from: number, to: number, limit: number, _signal: AbortSignal, _resources: string[], more = '') => {
      const within = all.filter(({ time }) => Date.parse(time) >= from && Date.parse(time) < to);
      asked.push(to - from);
      return { items: within.slice(Number(more), Number(more) + limit), more: Number(more) + limit < within.length ? String(Number(more) + limit) : '' };
    },
  } as unknown as History;
  const { signal } = new AbortController();
  let shown: EventMark[] = [];
  const events = new EventMarks(history);
  await events.load(1000_000, 4000_000, signal, (known) => (shown = known));
  assert.deepEqual([shown.length, shown[0].warning, events.since], [3000, true, 0]);
  await events.load(1500_000, 4500_000, signal, (known) => (shown = known));
  assert.deepEqual([asked.length, asked.at(-1)], [4, 500_000], 'only new ones are requested');
  await events.load(500_000, 4500_000, signal, (known) => (shown = known));
  assert.deepEqual([shown.length, asked.length, asked.at(-1)], [3500, 5, 500_000], 'only older ones are requested');
  const bars = byBar(shown, 60_000);
  assert.equal(bars.length, 59);
  assert.deepEqual([bars[0].warnings, bars[0].others, bars[1].others], [1, 19, 60]);
  assert.equal(eventWords(shown.slice(0, 20)), '1 Warning and 19 other Events');
  // Of too many, the strip has the newest, and knows from when on.
  const few = new EventMarks(history, 1500);
  await few.load(1000_000, 4500_000, signal, (known) => (shown = known));
  assert.deepEqual([shown.length, few.since], [1500, 3000_000]);
  // Of those before, it has the Warnings that are retained.
  const { warningMarks } = await import('../src/time/events');
  history.warnings = async () => warningMarks([{ reason: 'BackOff', message: 'restarting', firstTimestamp: at(900), lastTimestamp: at(1000), involvedObject: { name: 'web' } }]);
  await new EventMarks(history, 1500).load(1000_000, 4500_000, signal, (known) => (shown = known));
  assert.deepEqual([shown.length, shown[0]], [1501, { time: 1000_000, warning: true, about: 'web', words: 'BackOff: restarting' }]);
});

test('the list of changes covers what its words say', async () => {
  const { chipWords, listWindow, none, reachOf, unknownWords } = await import('../src/time/window');
  const { ALL } = await import('../src/app/state');
  const { clock } = await import('../src/time/words');
  const asked = { range: null, moment: 0, reach: 30, first: 1000_000 };
  assert.deepEqual(listWindow(asked, 5000_000), { from: 4940_000, to: 5000_000 });
  assert.deepEqual(listWindow({ ...asked, moment: 4990_000 }, 5000_000), { from: 4960_000, to: 5000_000 });
  assert.deepEqual(listWindow({ ...asked, reach: ALL }, 5000_000), { from: 1000_000, to: 5000_000 });
  assert.deepEqual(listWindow({ ...asked, range: { from: 1, to: 2 } }, 5000_000), { from: 1, to: 2 });
  // Deletions are looked for in everything recorded, unless something else was chosen.
  assert.deepEqual([reachOf(null, false), reachOf(null, true), reachOf(120, true)], [30, ALL, 120]);
  const deleted = { filter: 'tenant', status: false, deleted: true };
  assert.equal(none(deleted, asked), 'No deletions match tenant in the last 1 min.');
  assert.equal(none(deleted, { ...asked, reach: ALL }), 'No deletions match tenant in all that is recorded.');
  assert.equal(none({ ...deleted, deleted: false, filter: '' }, { ...asked, moment: 2000_000 }), `No changes within 30 s of ${clock(2000_000)}. Status updates are not listed.`);
  // A range before the recording.
  const range = { ...counts, resources: [{ ...counts.resources[0], spans: [], gaps: [] }] };
  const [whole] = unknownParts(range);
  assert.deepEqual(whole, { from: 1000_000, to: 1060_000, gap: false });
  assert.equal(unknownWords(whole, whole, 2000_000), `Nothing was recorded before ${clock(2000_000)}.`);
  const [start, gap] = unknownParts(counts);
  assert.equal(unknownWords(start, whole, 1010_000), `The recording starts at ${clock(1010_000)}.`);
  const since = unknownParts(counts, 'pods', 1050_000).at(-1)!;
  assert.equal(unknownWords(since, whole, 1010_000), `Nothing is known since ${clock(1050_000)}, the last contact with the cluster.`);
  assert.equal(unknownWords(gap, whole, 1010_000), `Nothing was observed from ${clock(1025_000)} to ${clock(1030_000)}: changes in that time are listed at its end.`);
  assert.deepEqual([chipWords(41, 4), chipWords(41, 41), chipWords(4100, null)], ['4 of 41', '41', '4,100']);
});

test('the list of changes says which of the usual suspects are not recorded', async () => {
  const { notRecorded } = await import('../src/time/unrecorded');
  const of = (...names: string[]) => names.map((resource) => ({ ...counts.resources[0], resource }));
  assert.deepEqual(notRecorded({ ...counts, resources: of('pods', 'configmaps', 'resourcequotas', 'ingresses.networking.k8s.io'), denied: ['horizontalpodautoscalers.autoscaling'] }), ['secrets', 'networkpolicies']);
});

test('versions say which times since the oldest of them were not observed', async () => {
  const { missedSince } = await import('../src/time/unrecorded');
  const { clock, zoned } = await import('../src/time/words');
  const at = (s: number): string => new Date(1000 * s).toISOString();
  const missed = (reason: string, from: number, to: number) => ({ resource: 'pods', reason, from: at(from), to: at(to) });
  const page = { items: [{ type: 'MODIFIED' as const, resourceVersion: '5', time: at(1050), summary: null }], more: '', unobserved: [missed('before', 0, 900), missed('gap', 1000, 1010), missed('gap', 1040, 1050), missed('silent', 1060, 1070)] };
  assert.deepEqual(missedSince(page), [`not known, because the API server did not serve the gateway from ${clock(1060_000)} to ${zoned(1070_000)}`, `not observed from ${clock(1040_000)} to ${zoned(1050_000)}`]);
  assert.deepEqual(missedSince({ items: [], more: '' }), []);
});

test('the URL has the window and the resources of the list', async () => {
  const { readAddress } = await import('../src/app/state');
  const read = (search: string) => (({ reach, kinds }) => [reach, kinds])(readAddress(search));
  assert.deepEqual(read(''), [null, []]);
  assert.deepEqual(read('?reach=600&kinds=pods,deployments.apps'), [600, ['pods', 'deployments.apps']]);
  assert.deepEqual(read('?reach=all'), [0, []]);
  assert.deepEqual(read('?reach=long&kinds=<b>'), [null, []]);
});

test('the URL selects only what can be an object, and no name ends the path of a request', async () => {
  const { readAddress } = await import('../src/app/state');
  const { apiURL, extensionURL } = await import('../src/app/api');
  const read = (sel: string) => (({ selection, notSelected }) => (notSelected ? `not ${notSelected}` : selection))(readAddress(`?${new URLSearchParams({ sel })}`));
  assert.deepEqual(read('pod/shop/web'), { kind: 'pod', namespace: 'shop', name: 'web' });
  assert.deepEqual(read('/api/v1/nodes/a'), { kind: 'node', name: 'a' });
  assert.equal(read(''), null);
  for (const sel of ['node/..', 'pod/shop/.', 'pod/Shop/web', 'pod/shop/a/b', 'node/a%23', '/api/v1/namespaces/shop/pods/', '/api/v1/namespaces/shop/pods/..', 'http://x']) assert.equal(read(sel), `not ${sel}`);
  assert.equal(apiURL('/api/v1/nodes/a#b?c', '', { dryRun: 'All' }), 'http://x/api/v1/nodes/a%23b%3Fc?dryRun=All');
  assert.equal(apiURL('/api/v1/nodes/system:a', 'rv:8#', {}), 'http://x/at/rv:8%23/api/v1/nodes/system:a');
  assert.equal(extensionURL('story/api/v1/nodes/a?b', { at: '1 m' }), 'http://x/watchkeeper/v1/story/api/v1/nodes/a%3Fb?at=1+m');
  for (const path of ['/api/v1/nodes/..', '/api/v1/nodes/.', '/api/v1/namespaces/shop/pods/', '/api/v1/namespaces//pods/a']) assert.throws(() => apiURL(path), /cannot be part of an API path/, path);
  assert.throws(() => apiURL('/api/v1/nodes', '..'), /cannot be part/);
});

test('the strip zooms about the pointer, and says how far the moment is outside', async () => {
  const { zoomed } = await import('../src/time/scrub');
  const { beyond } = await import('../src/time/plot');
  const range = { from: 0, to: 3600_000 };
  // A quarter from the left stays a quarter from the left.
  assert.deepEqual(zoomed(range, 0.5, 900_000, 3600_000), { span: 1800_000, edge: 2250_000 });
  assert.deepEqual(zoomed(range, 0.5, 3600_000, 3600_000), { span: 1800_000, edge: 0 }, 'at the right end, now stays');
  assert.deepEqual(zoomed({ from: 0, to: 1800_000 }, 4, 900_000, 3600_000), { span: 7200_000, edge: 0 }, 'a strip that reaches now follows it again');
  assert.deepEqual([beyond(900_000, 1200_000, 1800_000), beyond(1500_000, 1200_000, 1800_000), beyond(1199_000, 1200_000, 1800_000), beyond(2100_000, 1200_000, 1800_000)], ['5m earlier', '', '', '5m later']);
});

test('two fingers zoom and move the strip', async () => {
  const { pinched } = await import('../src/time/scrub');
  const range = { from: 0, to: 3600_000 };
  const later = 100 * 3600_000;
  // The time between the fingers, here a quarter from the left, goes with them.
  assert.deepEqual(pinched(range, 0.5, 0.25, 0.25, later), { span: 1800_000, edge: 2250_000 });
  assert.deepEqual(pinched(range, 1, 0.25, 0.5, later), { span: 3600_000, edge: 2700_000 }, 'without a zoom it only moves');
  assert.deepEqual(pinched(range, 2, 0.5, 0.75, later), { span: 7200_000, edge: 3600_000 });
  assert.equal(pinched(range, 1e-6, 0.5, 0.5, later).span, 60_000, 'it has a shortest time');
  assert.equal(pinched(range, 1, 0.5, 0.2, 3600_000).edge, 0, 'at the right end it follows now');
});

test('status updates of an object are one line', async () => {
  const { foldStatus, runWords } = await import('../src/panel/status-runs');
  const version = (s: number, ...paths: string[]): Change => ({ type: 'MODIFIED', resourceVersion: String(s), time: at(s), summary: [], changes: paths.map((path) => ({ op: 'replace', path })) });
  const noise: Change = { type: 'FOLDED', resourceVersion: '1055', time: at(1055), summary: null };
  const items = [version(1070, '/status/readyReplicas'), version(1060, '/status/readyReplicas', '/status/conditions/0'), noise, version(1050, '/status'), version(1040, '/spec/replicas', '/status/replicas'), version(1030, '/status/replicas')];
  const folded = foldStatus(items, () => false).map((item) => ('updates' in item ? item.updates.length : item.resourceVersion));
  assert.deepEqual(folded, [3, '1040', 1]);
  const [run] = foldStatus(items, () => false);
  assert.match('updates' in run ? runWords(run) : '', /^3 status updates, .*:17:30 – .*:17:50$/);
  const late = foldStatus([version(1070, '/status'), { ...version(1060, '/status'), notBefore: at(1000) }], () => false)[0];
  assert.match('updates' in late ? runWords(late) : '', /^2 status updates, .*:17:40 \(not before .*:16:40\) – .*:17:50$/);
  assert.deepEqual(foldStatus(items, () => true), items, 'with the switch, all are listed');
  assert.equal(foldStatus(items, (item) => item.resourceVersion === '1060').length, 6, 'the shown version stays apart');
});
