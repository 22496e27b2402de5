// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';

process.env.TZ = 'America/St_Johns'; // half an hour off, and with a summer time
const { utc, zoneName } = await import('../src/app/zone');
const { parseMoment } = await import('../src/time/moment');
const { clock, full, zoned } = await import('../src/time/words');
const { tickText } = await import('../src/time/plot');

const winter = Date.parse('2026-01-31T14:02:09.125Z');
const summer = Date.parse('2026-07-01T01:02:09Z');

test('times are in the zone of the browser, or in UTC', () => {
  assert.deepEqual([clock(winter, winter), clock(winter, summer), zoneName(winter), zoneName(summer)], ['10:32:09', '2026-01-31 10:32:09', 'UTC-3:30', 'UTC-2:30']);
  assert.equal(full(winter), '2026-01-31 10:32:09.125 UTC-3:30');
  assert.equal(tickText(winter, 5), '10:32:09');
  utc.value = true;
  assert.deepEqual([clock(winter, winter), full(winter), zoneName(summer)], ['14:02:09', '2026-01-31 14:02:09.125 UTC', 'UTC']);
  assert.equal(tickText(winter, 300), '14:02');
  utc.value = false;
});

test('each printed form of a time is read as that time', () => {
  for (const inUTC of [false, true]) {
    utc.value = inUTC;
    for (const at of [winter, summer]) {
      const second = Math.floor(at / 1000) * 1000;
      for (const now of [at + 5000, at + 86_400_000 * 20]) {
        for (const text of [clock(at, now), `${clock(at, now)} ${zoneName(at)}`]) assert.equal(parseMoment(text, now)?.time, second, text);
      }
      for (const text of [full(at), new Date(at).toISOString(), new Date(at).toISOString().replace('Z', '+00:00')]) assert.equal(parseMoment(text, at + 1)?.time, at, text);
      assert.ok(zoned(at).endsWith(zoneName(at)));
    }
  }
  utc.value = false;
});

const now = Date.parse('2026-01-31T14:02:09Z');
const CASES: [string, string | undefined][] = [
  ['10m', '2026-01-31T13:52:09.000Z'],
  ['1h30m', '2026-01-31T12:32:09.000Z'],
  ['3m12s ago', '2026-01-31T13:58:57.000Z'],
  ['2d', '2026-01-29T14:02:09.000Z'],
  ['13:01:12Z', '2026-01-31T13:01:12.000Z'],
  ['13:01 UTC', '2026-01-31T13:01:00.000Z'],
  ['15:00Z', '2026-01-30T15:00:00.000Z'], // the last 15:00 was yesterday
  ['23:30 UTC+12', '2026-01-31T11:30:00.000Z'],
  ['2026-01-31 13:01:12', '2026-01-31T16:31:12.000Z'],
  ['2026-01-31T13:01:12+05:30', '2026-01-31T07:31:12.000Z'],
  ['2026-01-31Z', '2026-01-31T00:00:00.000Z'],
  ['rv:812', 'rv:812'],
  ['812', 'rv:812'],
  ['', undefined],
  ['0', undefined],
  ['soon', undefined],
  ['25:00', undefined],
  ['12:60', undefined],
  ['2026-13-01 10:00', undefined],
  ['UTC', undefined],
];
for (const [text, want] of CASES) test(`moment: ${JSON.stringify(text)}`, () => assert.equal(parseMoment(text, now)?.at, want));
