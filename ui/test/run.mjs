// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// node test/run.mjs [--short] [PATTERN…]: runs the tests of the page (test/*.test.mjs
// whose names contain a PATTERN) in Chromium, and one in Firefox: against real clusters
// with a gateway and kubectl proxy, and those that only read on a recording. It needs
// "make build", and Debian's chromium-headless-shell (or chromium) and firefox-esr. With
// --short ("make test") it runs the files of SHORT, without the tests that are marked
// `long`. With --keep the cluster runs until Ctrl-C, and the tests do not; with
// WATCHKEEPER_TEST set to what --keep printed, the tests use that cluster.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { shots } from './browser.mjs';
import { startAll } from './cluster.mjs';

/** Files whose tests only read, and so run on a recording, two at a time and without a cluster. */
const RECORDED = ['explains', 'guide', 'renderers', 'unobserved', 'unsafe'];

/** Files of --short. Together they show every view, and write. */
const SHORT = ['actions', 'board', 'explains', 'guide', 'keyboard', 'kinds', 'past', 'spreadsheet', 'workloads'];

/**
 * Groups of test files run side by side, each with a cluster of its own; the files of a
 * group run one after the other. Files of the second group kill the API server, add Nodes,
 * or step through all changes of the cluster, which would not end while other tests make
 * changes. Files of the third are about users with different rights, which mostly wait for
 * the page to ask again. Both have as many others as make the groups equally long. A file
 * that is not listed is in the first. With --short, all are in the first.
 */
const OWN_CLUSTERS = [
  ['actions', 'firefox', 'focus', 'informer', 'kinds', 'outage', 'past', 'proxied', 'views', 'workloads'],
  ['address', 'axe', 'denied', 'login', 'restricted', 'shared', 'spreadsheet', 'story'],
];

process.env.GOGC ??= '300'; // of the clusters: an API server collects much garbage at its start

const args = process.argv.slice(2);
const keep = args.includes('--keep');
const short = args.includes('--short');
const patterns = args.filter((arg) => !arg.startsWith('--'));
const flags = args.filter((arg) => arg.startsWith('--') && !['--keep', '--short'].includes(arg));
if (flags.length) throw new Error(`unknown: ${flags}; usage: node test/run.mjs [--short] [--keep] [part of a file's name]...`);
const here = fileURLToPath(new URL('.', import.meta.url));
const all = readdirSync(here).filter((name) => name.endsWith('.test.mjs')).map((name) => name.replace('.test.mjs', ''));
const names = all.filter((name) => (!short || SHORT.includes(name)) && (patterns.length === 0 || patterns.some((pattern) => `${name}.test.mjs`.includes(pattern))));
if (names.length === 0) throw new Error(`no test file has a name like ${patterns}`);

if (patterns.length === 0 && !short) rmSync(shots, { recursive: true, force: true });
mkdirSync(shots, { recursive: true });

const work = mkdtempSync(join(tmpdir(), 'watchkeeper-run-'));
const stops = [() => rmSync(work, { recursive: true })];
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
async function startCluster() {
  const { environment, stop } = await startAll();
  stops.push(stop);
  return environment;
}

/** Node 20 has WebSockets only with this flag. */
const webSocket = 'WebSocket' in globalThis ? [] : ['--experimental-websocket'];

/** Runs test files, some at a time. The result is the exit code, the output, and a line for each failure. */
function run(group, environment, atOnce, stdio) {
  const files = group.map((name) => `${here}${name}.test.mjs`);
  const failures = join(work, group[0]);
  const reporters = ['--test-reporter=spec', '--test-reporter-destination=stdout', `--test-reporter=${here}failures.mjs`, `--test-reporter-destination=${failures}`];
  // What a failed test leaves open, a gateway or a connection, must not keep its file from ending.
  const child = spawn(process.execPath, [...webSocket, '--test', '--test-force-exit', `--test-concurrency=${atOnce}`, ...reporters, ...files], {
    stdio: ['ignore', stdio, 'inherit'],
    env: { ...process.env, WATCHKEEPER_TEST: JSON.stringify({ ...environment, short }) },
  });
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text) => (output += text));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code: code ?? 1, output, failures: readFileSync(failures, 'utf8') })));
}

try {
  if (keep) {
    console.log('starting a cluster, a gateway and kubectl proxy');
    console.log(`WATCHKEEPER_TEST='${JSON.stringify(await startCluster())}'`);
  } else {
    const given = process.env.WATCHKEEPER_TEST && JSON.parse(process.env.WATCHKEEPER_TEST);
    const recorded = names.filter((name) => RECORDED.includes(name));
    const live = names.filter((name) => !RECORDED.includes(name));
    const own = given || short ? [] : OWN_CLUSTERS.map((group) => live.filter((name) => group.includes(name)));
    const groups = [live.filter((name) => !own.some((group) => group.includes(name))), ...own].filter((group) => group.length > 0);
    if (groups.length > 0) console.log(given ? 'using the given cluster' : 'starting clusters, gateways and kubectl proxies');
    const results = await Promise.all([
      ...groups.map(async (group, i) => run(group, given ?? (await startCluster()), 1, i === 0 ? 'inherit' : 'pipe')),
      ...(recorded.length > 0 ? [run(recorded, {}, 2, groups.length > 0 ? 'pipe' : 'inherit')] : []),
    ]);
    for (const { output } of results) process.stdout.write(output);
    console.log(`pictures are in ${shots}`);
    if (short) console.log(`not run: the tests marked "make test-all runs it", some cases of explains, pictures, movement, and the files ${all.filter((name) => !names.includes(name)).join(', ')}; "make test-all" or "node test/run.mjs" runs them`);
    const failures = results.flatMap(({ failures }) => failures.split('\n').filter(Boolean));
    if (failures.length > 0) console.log(['failed:', ...failures.slice(0, 15), ...(failures.length > 15 ? [`and ${failures.length - 15} more, see above`] : [])].join('\n'));
    await end(Math.max(...results.map(({ code }) => code)));
  }
} catch (error) {
  console.error(error);
  await end(1);
}
