// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// node build.js: the package into dist/, the tests into build/test/. The types
// are tsc's.

import { readdirSync, rmSync } from 'node:fs';
import { build } from 'esbuild';

const common = { bundle: true, format: 'esm', target: 'es2022', logLevel: 'warning' };

rmSync('dist', { recursive: true, force: true });
rmSync('build', { recursive: true, force: true });
await build({ ...common, entryPoints: ['src/index.ts', 'src/json.ts'], outdir: 'dist' });
const tests = readdirSync('test').filter((name) => name.endsWith('.test.ts'));
await build({
  ...common,
  entryPoints: tests.map((name) => `test/${name}`),
  outdir: 'build/test',
  platform: 'node',
  packages: 'external',
  sourcemap: 'inline',
});
