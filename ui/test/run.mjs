// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// node test/run.mjs [PATTERN…]: runs the tests of the page (test/*.test.mjs whose
// names contain a PATTERN) in Chromium, and one in Firefox, against a real cluster
// with a gateway and kubectl proxy. It needs "make build", and Debian's chromium and firefox-esr. With --keep the
// cluster runs until Ctrl-C, and the tests do not; with WATCHKEEPER_TEST set to
// what --keep printed, the tests use that cluster.

import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { serveBrowser, shots } from './browser.mjs';
import { startAll } from './cluster.mjs';

/**
 * Groups of test files run side by side, each with a cluster of its own; the files of a
 * group run one after the other. Files of the second group kill the API server, add Nodes,
 * or step through all changes of the cluster, which would not end while other tests make
 * changes. Files of the third are about users with different rights, which mostly wait for
 * the page to ask again. Both have as many others as make the groups equally long. A file
 * that is not listed is in the first.
 */
const OWN_CLUSTERS = [
  ['actions', 'firefox', 'focus', 'informer', 'kinds', 'outage', 'past', 'proxied', 'views', 'workloads'],
  ['address', 'axe', 'denied', 'login', 'restricted', 'shared', 'spreadsheet', 'story'],
];

process.env.GOGC ??= '300'; // of the clusters: an API server collects much garbage at its start

const args = process.argv.slice(2);
const keep = args.includes('--keep');
const patterns = args.filter((arg) => !arg.startsWith('--'));
const here = fileURLToPath(new URL('.', import.meta.url));
const names = readdirSync(here)
  .filter((name) => name.endsWith('.test.mjs') && (patterns.length === 0 || patterns.some((pattern) => name.includes(pattern))))
  .map((name) => name.replace('.test.mjs', ''));
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

/** Starts a cluster, a gateway, kubectl proxy, and a Chromium. The result is the environment of the tests. */
async function start() {
  const browser = await serveBrowser();
  stops.push(browser.stop);
  const { environment, stop } = await startAll();
  stops.push(stop);
  return JSON.stringify({ ...environment, browser: browser.address });
}

/** Node 20 has WebSockets only with this flag. */
const webSocket = 'WebSocket' in globalThis ? [] : ['--experimental-websocket'];

/** Runs test files one after the other. The result is the exit code and the output. */
function run(group, environment, stdio) {
  const files = group.map((name) => `${here}${name}.test.mjs`);
  const child = spawn(process.execPath, [...webSocket, '--test', '--test-concurrency=1', '--test-reporter=spec', ...files], {
    stdio: ['ignore', stdio, 'inherit'],
    env: { ...process.env, WATCHKEEPER_TEST: environment },
  });
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text) => (output += text));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code: code ?? 1, output })));
}

try {
  if (keep) {
    console.log('starting a cluster, a gateway and kubectl proxy');
    console.log(`WATCHKEEPER_TEST='${await start()}'`);
  } else {
    const given = process.env.WATCHKEEPER_TEST;
    const own = given ? [] : OWN_CLUSTERS.map((group) => names.filter((name) => group.includes(name)));
    const first = names.filter((name) => !own.some((group) => group.includes(name)));
    console.log(given ? 'using the given cluster' : 'starting clusters, gateways and kubectl proxies');
    const groups = [first, ...own].filter((group) => group.length > 0);
    const results = await Promise.all(groups.map(async (group, i) => run(group, given || (await start()), i === 0 ? 'inherit' : 'pipe')));
    for (const { output } of results) process.stdout.write(output);
    console.log(`pictures are in ${shots}`);
    await end(Math.max(...results.map(({ code }) => code)));
  }
} catch (error) {
  console.error(error);
  await end(1);
}
