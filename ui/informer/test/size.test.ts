// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

test('it is smaller than 7 kB', async (t) => {
  const { outputFiles } = await build({ entryPoints: ['src/index.ts'], bundle: true, minify: true, format: 'esm', target: 'es2022', write: false });
  const size = gzipSync(outputFiles[0]!.contents, { level: 9 }).length;
  t.diagnostic(`${size} bytes`);
  assert.ok(size < 7000, `${size} bytes`);
});
