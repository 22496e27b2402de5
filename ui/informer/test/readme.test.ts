// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { eventually } from './observer.js';
import { ApiServer } from './server.js';

test('the example in the README runs', async (t) => {
  const code = /```ts\n(.*?)```/s.exec(readFileSync('README.md', 'utf8'))![1]!;
  assert.ok(code.trim().split('\n').length <= 15, 'it is longer than 15 lines');
  const server = await new ApiServer().start();
  t.after(() => server.stop());
  const path = '/api/v1/namespaces/default/pods';
  server.put(path, 'web-1');
  await build({
    // It closes its connection after the last event, not after a minute.
    stdin: { contents: code.replace('setTimeout(() => connection.close(), 60_000)', "pods.on('delete', () => connection.close())").replace('http://127.0.0.1:8001', server.url), resolveDir: '.', loader: 'ts' },
    alias: { '@watchkeeper/informer': './src/index.ts' },
    bundle: true,
    format: 'esm',
    outfile: 'build/readme.mjs',
  });
  const run = promisify(execFile)(process.execPath, ['build/readme.mjs'], { timeout: 60_000 });
  await eventually('its watch', () => server.watching(path).length === 0);
  server.put(path, 'web-1');
  server.remove(path, 'web-1');
  const { stdout } = await run; // it ends when its connection is closed
  assert.deepEqual(
    stdout.trim().split('\n').map((line) => line.trim()),
    ['syncing', '+ ns/web-1 undefined', '1 undefined', 'live', '~ ns/web-1 undefined undefined', '- ns/web-1', 'stopped'],
  );
});
