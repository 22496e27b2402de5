// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The real things for tests: a local control plane, gateways in front of it, and
// kubectl. test/run.mjs starts them once for all test files.

import { execFile, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const localcluster = process.env.LOCALCLUSTER_BIN ?? join(root, 'bin/localcluster');
const watchkeeper = process.env.WATCHKEEPER_BIN ?? join(root, 'bin/watchkeeper');

/** What run.mjs tells the tests: {gateway, proxy, dir, www}. */
const given = process.env.WATCHKEEPER_TEST ? JSON.parse(process.env.WATCHKEEPER_TEST) : {};

/** URLs of the gateway and of kubectl proxy, the folder of the cluster, and that of the files both serve at /static/. */
export const { gateway, proxy, dir, www } = given;

/**
 * Starts a program and waits for a line of its output that matches ready. It
 * ends with this one, whatever becomes of that. The result is the line, the
 * process, what it has printed, and stop(signal).
 */
export async function start(command, args, ready, seconds = 180) {
  // The kernel tells the child when this process is gone.
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
  // It records nothing unless it is to: not into the home of whoever runs the tests.
  const recording = flags.includes('--data-dir') ? [] : ['--data-dir='];
  const args = ['serve', '--kubeconfig', join(clusterDir, 'kubeconfig'), '--port', String(port), '--admin-listen', '', ...recording, ...flags];
  const { line, output, stop } = await start(watchkeeper, args, /^Starting to serve on /);
  return { url: line.replace('Starting to serve on ', ''), output, stop };
}

/** Serves a recording of the repository. The result is {url, stop, output}. */
export async function startRecording(file) {
  const { line, output, stop } = await start(watchkeeper, ['open', join(root, file), '--port', '0'], /^Starting to serve on /);
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
    const { build } = await import('esbuild'); // here, as the tests import this file, too
    await build({ entryPoints: [join(root, 'ui/informer/src/index.ts')], outfile: join(www, 'informer.mjs'), bundle: true, format: 'esm', target: 'es2022' });
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

/** Makes so many Pods like those of a real cluster. */
export async function load(pods) {
  await run(localcluster, ['load', '--dir', dir, '--pods', String(pods), '--namespaces', '6']);
}

/** GETs a path from the API server itself. */
export async function api(path) {
  const response = await fetch(proxy + path);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

/** Makes objects of their JSON. */
export async function apply(...objects) {
  const child = run(localcluster, ['kubectl', '--dir', dir, 'apply', '-f', '-']);
  child.child.stdin.end(objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  await child;
}

/** Ends a component, such as kube-apiserver, with a signal. */
export async function signal(component, name = 'KILL') {
  await run(localcluster, ['stop', component, '--dir', dir, '--signal', name]);
}

/** Starts a component again; one that a busy machine keeps from starting is tried anew. */
export async function startComponent(component) {
  for (let left = 3; ; left--) {
    try {
      await run(localcluster, ['start', component, '--dir', dir]);
      return;
    } catch (error) {
      if (left === 1) throw error;
    }
  }
}

/** Waits until a function returns what is true, for a minute, and returns it. What it throws is the reason why not. */
export async function until(what, test, seconds = 60) {
  const deadline = Date.now() + seconds * 1000;
  let why = '';
  while (Date.now() < deadline) {
    try {
      const value = await test();
      if (value) return value;
      why = JSON.stringify(value);
    } catch (error) {
      why = String(error);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`there never was ${what}: ${why}`);
}

/** A namespace for a test, which goes with the cluster. */
export async function namespace(name) {
  const full = `${name}-${process.pid}`;
  await kubectl('create', 'namespace', full);
  await until('a default service account', () => kubectl('-n', full, 'get', 'serviceaccount', 'default'));
  return full;
}
