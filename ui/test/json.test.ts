// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

/** Their JSON has no object of the cluster whose values are shown or written: the board, reviews, and what the page makes itself. */
const plain = [
  'actions/delete.tsx', 'actions/drain.ts', 'actions/menu.tsx', 'actions/plan.ts', 'app/api.ts', 'app/findings.ts', 'app/login.ts', 'data/access.ts', 'data/live.ts', 'data/outage.ts', 'data/past.ts',
  'details/load.ts', 'panel/story-tab.tsx', 'panel/yaml.ts', 'write/write.ts',
];

test('JSON of objects is read and written with all digits of integers', () => {
  const source = new URL('../../src/', import.meta.url);
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name));
  const found = files.filter((name) => /\bJSON\.(parse|stringify)\b|\.json\(\)/.test(readFileSync(new URL(name, source), 'utf8')));
  assert.deepEqual(found.sort(), plain);
});
