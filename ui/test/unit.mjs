// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// node test/unit.mjs [NAME…]: bundles the unit tests of the page with Vite's
// bundler, and runs them with Node's test runner.

import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { rolldown } from 'rolldown';

const here = new URL('.', import.meta.url).pathname;
const out = `${here}../.test/unit`;
const names = readdirSync(here).filter((file) => file.endsWith('.test.ts') && (process.argv.length < 3 || process.argv.slice(2).some((name) => file.includes(name))));

rmSync(out, { recursive: true, force: true });
const bundle = await rolldown({
  input: Object.fromEntries(names.map((name) => [name.replace('.ts', ''), here + name])),
  platform: 'node',
  resolve: { conditionNames: ['source', 'import', 'default'] },
  moduleTypes: { '.css': 'empty' },
});
await bundle.write({ dir: out, entryFileNames: '[name].mjs', chunkFileNames: 'shared-[hash].mjs', sourcemap: 'inline' });
await bundle.close();
const run = spawnSync(process.execPath, ['--enable-source-maps', '--test', ...names.map((name) => `${out}/${name.replace('.ts', '.mjs')}`)], { stdio: 'inherit' });
process.exit(run.status ?? 1);
