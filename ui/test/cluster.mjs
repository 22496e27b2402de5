// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// A local control plane for tests, gateways in front of it, and kubectl.
// test/run.mjs starts them for a group of test files.

import { execFile, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const localcluster = process.env.LOCALCLUSTER_BIN ?? join(root, 'bin/localcluster');
export const watchkeeper = process.env.WATCHKEEPER_BIN ?? join(root, 'bin/watchkeeper');

/** From run.mjs: {gateway, proxy, dir, www, short}. A test on a recording has only the last. */
const given = process.env.WATCHKEEPER_TEST ? JSON.parse(process.env.WATCHKEEPER_TEST) : {};

/**
 * The URLs of the gateway and of kubectl proxy, the folder of the cluster, and that of the
 * files which both serve at /static/.
 */
export const { gateway, proxy, dir, www } = given;

/** Whether this is "run.mjs --short". */
export const short = Boolean(given.short);

/** Options of a test that takes long: "run.mjs --short" does not run it. */
export const long = { skip: short && 'make test-all runs it' };

/** The first n cases of a test with "run.mjs --short", otherwise all. */
export const few = (cases, n) => (short ? cases.slice(0, n) : cases);

/**
 * Starts a program and waits for a line of its output that matches ready. It
 * ends when this process does. The result is the line, the output, the process
 * id, and stop(signal).
 */
export async function start(command, args, ready, seconds = 180) {
  // The kernel stops the child when this process ends.
  const child = spawn('setpriv', ['--pdeathsig', 'TERM', command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const output = [];
  const ended = new Promise((resolve) => child.on('close', resolve));
  const line = await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`${command} was not ready after ${seconds} s:\n${output.join('\n')}`)), seconds * 1000);
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on('line', (text) => {
        output.push(text);
        if (!ready.test(text)) return;
        clearTimeout(late);
        resolve(text);
      });
    }
    child.on('error', reject);
    void ended.then((code) => {
      clearTimeout(late);
      reject(new Error(`${command} ended with ${code}:\n${output.join('\n')}`));
    });
  }).catch((error) => {
    child.kill('SIGKILL');
    throw error;
  });
  const stop = (signal = 'SIGTERM') => {
    child.kill(signal);
    return ended;
  };
  return { line, output, pid: child.pid, stop };
}

/** Starts a gateway in front of the cluster, with further flags. The result is {url, stop, output}. */
export async function startGateway(flags = [], clusterDir = dir, port = 0) {
  // Without this flag it would record into the home directory.
  const recording = flags.includes('--data-dir') ? [] : ['--data-dir='];
  const args = ['serve', '--kubeconfig', join(clusterDir, 'kubeconfig'), '--port', String(port), '--admin-listen', '', ...recording, ...flags];
  const { line, output, stop } = await start(watchkeeper, args, /^Starting to serve on /);
  return { url: line.replace('Starting to serve on ', ''), output, stop };
}

/** Serves a recording, of the repository if its path is relative. The result is {url, stop, output}. */
export async function startRecording(file) {
  const { line, output, stop } = await start(watchkeeper, ['open', resolve(root, file), '--port', '0'], /^Starting to serve on /);
  return { url: line.replace('Starting to serve on ', ''), output, stop };
}

/** Starts the cluster, a gateway and kubectl proxy, both of which serve test/www at /static/. */
export async function startAll() {
  const work = mkdtempSync(join(tmpdir(), 'watchkeeper-ui-'));
  const running = [];
  const stop = async () => {
    for (const one of running.reverse()) await one.stop();
    rmSync(work, { recursive: true, force: true });
  };
  try {
    const clusterDir = join(work, 'cluster');
    const www = join(work, 'www');
    cpSync(join(root, 'ui/test/www'), www, { recursive: true });
    cpSync(join(root, 'ui/informer/example'), join(www, 'example'), { recursive: true });
    const { build } = await import('esbuild'); // only run.mjs needs it, and the tests import this file
    for (const name of ['informer.mjs', 'dist/index.js']) {
      await build({ entryPoints: [join(root, 'ui/informer/src/index.ts')], outfile: join(www, name), bundle: true, format: 'esm', target: 'es2022' });
    }
    running.push(await start(localcluster, ['up', '--dir', clusterDir, '--nodes', '3'], /^ready /));
    const first = await startGateway(['--www', www, '--data-dir', join(clusterDir, 'history')], clusterDir);
    running.push(first);
    const second = await start(localcluster, ['kubectl', '--dir', clusterDir, 'proxy', '--port', '0', '--www', www], /^Starting to serve on /, 30);
    running.push(second);
    const proxyURL = 'http://' + second.line.replace('Starting to serve on ', '');
    return { environment: { gateway: first.url, proxy: proxyURL, dir: clusterDir, www }, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const run = promisify(execFile);

/** Runs kubectl against the API server and returns what it prints. */
export async function kubectl(...args) {
  const { stdout } = await run(localcluster, ['kubectl', '--dir', dir, ...args]);
  return stdout;
}

/** Creates Pods like those of a real cluster. */
export async function load(pods) {
  await run(localcluster, ['load', '--dir', dir, '--pods', String(pods), '--namespaces', '6']);
}

/** GETs a path from the API server, without the gateway. */
export async function api(path, accept = 'application/json') {
  const response = await fetch(proxy + path, { headers: { accept } });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

/** Applies objects. */
export async function apply(...objects) {
  const child = run(localcluster, ['kubectl', '--dir', dir, 'apply', '-f', '-']);
  child.child.stdin.end(objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  await child;
}

/** Sends a signal to a component, such as kube-apiserver. */
export async function signal(component, name = 'KILL') {
  await run(localcluster, ['stop', component, '--dir', dir, '--signal', name]);
}

/** Starts a component again. */
export async function startComponent(component) {
  await run(localcluster, ['start', component, '--dir', dir]);
}

/** Waits up to a minute until a function returns a true value, and returns it. The last exception is part of the error. */
export async function until(what, test, seconds = 60) {
  const deadline = Date.now() + seconds * 1000;
  let why = '';
  // Most conditions are soon true, and each test costs 5 ms of the processors.
  for (let pause = 20; Date.now() < deadline; pause = Math.min(2 * pause, 200)) {
    try {
      const value = await test();
      if (value) return value;
      why = JSON.stringify(value);
    } catch (error) {
      why = String(error);
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  throw new Error(`timed out waiting for ${what}: ${why}`);
}

/** Waits until the text of an element of a page has a pattern. An error says what it reads. */
export const reads = (what, element, pattern) =>
  until(what, async () => {
    const text = await element.innerText();
    if (pattern.test(text)) return true;
    throw new Error(`${pattern} is not in: ${text}`);
  });

/** Creates a namespace for a test. It is deleted with the cluster. */
export async function namespace(name) {
  const full = `${name}-${process.pid}`;
  const body = JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: full } });
  const created = await fetch(`${proxy}/api/v1/namespaces`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  if (!created.ok) throw new Error(`namespace ${full}: ${created.status} ${await created.text()}`);
  await until('a default service account', () => api(`/api/v1/namespaces/${full}/serviceaccounts/default`));
  return full;
}
