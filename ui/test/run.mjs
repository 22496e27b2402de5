// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// node test/run.mjs [PATTERN…]: runs the tests of the page (test/*.test.mjs whose
// names contain a PATTERN) in Chromium, against a real cluster with a gateway and
// kubectl proxy. It needs "make build" and Debian's chromium. With --keep the
// cluster runs until Ctrl-C, and the tests do not; with WATCHKEEPER_TEST set to
// what --keep printed, the tests use that cluster.

import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { shots } from './browser.mjs';
import { startAll } from './cluster.mjs';

/** This file adds Nodes and 700 Pods to the cluster, so it runs last. */
const LAST = 'views';

const args = process.argv.slice(2);
const keep = args.includes('--keep');
const patterns = args.filter((arg) => !arg.startsWith('--'));
const here = fileURLToPath(new URL('.', import.meta.url));
const names = readdirSync(here)
  .filter((name) => name.endsWith('.test.mjs') && (patterns.length === 0 || patterns.some((pattern) => name.includes(pattern))))
  .sort((a, b) => a.startsWith(LAST) - b.startsWith(LAST));
if (names.length === 0) throw new Error(`no test file has a name like ${patterns}`);

if (patterns.length === 0) rmSync(shots, { recursive: true, force: true });
mkdirSync(shots, { recursive: true });

const stops = [];
let ended = false;
/** Stops everything that was started, once. */
async function end(code) {
  if (ended) return;
  ended = true;
  await Promise.all(stops.map((stop) => stop()));
  process.exit(code);
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => end(130));

/** Starts a cluster, a gateway and kubectl proxy. The result is the environment of the tests. */
async function start() {
  console.log('starting a cluster, a gateway and kubectl proxy');
  const { environment, stop } = await startAll();
  stops.push(stop);
  return JSON.stringify(environment);
}

/** Runs the test files one after the other. The result is the exit code. */
function run(environment) {
  const child = spawn(process.execPath, ['--test', '--test-concurrency=1', '--test-reporter=spec', ...names.map((name) => here + name)], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, WATCHKEEPER_TEST: environment },
  });
  return new Promise((resolve) => child.on('close', (code) => resolve(code ?? 1)));
}

try {
  if (keep) {
    console.log(`WATCHKEEPER_TEST='${await start()}'`);
  } else {
    const code = await run(process.env.WATCHKEEPER_TEST || (await start()));
    console.log(`pictures are in ${shots}`);
    await end(code);
  }
} catch (error) {
  console.error(error);
  await end(1);
}
