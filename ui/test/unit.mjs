// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// node test/unit.mjs [NAME…]: bundles the unit tests of the page with Vite's
// bundler, and runs them with Node's test runner: in one process, as the start of a process
// costs more than most of these files, except those that set the environment or a signal.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { rolldown } from 'rolldown';

const here = new URL('.', import.meta.url).pathname;
const out = `${here}../.test/unit`;
const names = readdirSync(here).filter((file) => file.endsWith('.test.ts') && (process.argv.length < 3 || process.argv.slice(2).some((name) => file.includes(name))));

if (names.length === 0) throw new Error(`no test has a name like ${process.argv.slice(2)}`);

rmSync(out, { recursive: true, force: true });
const bundle = await rolldown({
  input: Object.fromEntries(names.map((name) => [name.replace('.ts', ''), here + name])),
  platform: 'node',
  resolve: { conditionNames: ['source', 'import', 'default'] },
  moduleTypes: { '.css': 'empty' },
});
await bundle.write({ dir: out, entryFileNames: '[name].mjs', chunkFileNames: 'shared-[hash].mjs', sourcemap: 'inline' });
await bundle.close();
const alone = names.filter((name) => /^(process\.env\.|Object\.assign\(globalThis|\w+\.value = )/m.test(readFileSync(here + name, 'utf8')));
writeFileSync(`${out}/others.mjs`, names.filter((name) => !alone.includes(name)).map((name) => `import './${name.replace('.ts', '.mjs')}';\n`).join(''));
const run = spawnSync(process.execPath, ['--enable-source-maps', '--test', `${out}/others.mjs`, ...alone.map((name) => `${out}/${name.replace('.ts', '.mjs')}`)], { stdio: 'inherit' });
process.exit(run.status ?? 1);
