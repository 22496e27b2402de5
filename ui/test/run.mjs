// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// node test/run.mjs [PATTERN…]: brings up a real cluster with a gateway and
// kubectl proxy in front of it, runs the tests of the page in Chromium (those of
// test/*.test.mjs whose names have a PATTERN in them), and ends it all. It needs
// "make build" and Debian's chromium. With --keep the cluster stays until
// Ctrl-C, for a look; with WATCHKEEPER_TEST set to what --keep has printed, the
// tests run against that one.

import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startAll } from './cluster.mjs';
import { shots } from './browser.mjs';

const args = process.argv.slice(2);
const keep = args.includes('--keep');
const patterns = args.filter((arg) => !arg.startsWith('--'));
const here = fileURLToPath(new URL('.', import.meta.url));
const files = readdirSync(here)
  .filter((name) => name.endsWith('.test.mjs') && (patterns.length === 0 || patterns.some((pattern) => name.includes(pattern))))
  .map((name) => here + name);
if (files.length === 0) throw new Error(`no tests have a name like ${patterns}`);

if (patterns.length === 0) rmSync(shots, { recursive: true, force: true });
mkdirSync(shots, { recursive: true });

let stop = async () => {};
let ended = false;
/** Ends the cluster, once, whatever happens. */
async function end(code) {
  if (ended) return;
  ended = true;
  await stop();
  process.exit(code);
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => end(130));

let environment = process.env.WATCHKEEPER_TEST;
if (!environment) {
  console.log('starting a cluster, a gateway and kubectl proxy');
  const all = await startAll();
  stop = all.stop;
  environment = JSON.stringify(all.environment);
}
if (keep) {
  console.log(`WATCHKEEPER_TEST='${environment}'`);
} else {
  const child = spawn(process.execPath, ['--test', '--test-concurrency=1', '--test-reporter=spec', ...files], {
    stdio: 'inherit',
    env: { ...process.env, WATCHKEEPER_TEST: environment },
  });
  child.on('exit', (code) => {
    console.log(`pictures are in ${shots}`);
    void end(code ?? 1);
  });
}
