// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// A minimal client of Chromium's DevTools protocol. Playwright subscribes to every
// chunk of every response and keeps the bodies, which dominates the cost of a page
// that reads a lot.

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Starts a headless Chromium. */
export async function start() {
  const profile = await mkdtemp(join(tmpdir(), 'watchkeeper-chromium-'));
  const child = spawn(process.env.CHROMIUM ?? '/usr/bin/chromium', [
    '--headless', '--no-sandbox', '--remote-debugging-pipe', '--hide-scrollbars', '--mute-audio', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-extensions', '--disable-sync', `--user-data-dir=${profile}`, 'about:blank',
  ], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const [, , , out, into] = child.stdio;
  const waiting = new Map();
  const listeners = new Set();
  let id = 0;
  let rest = [];
  into.on('data', (chunk) => {
    for (let end; (end = chunk.indexOf(0)) >= 0; chunk = chunk.subarray(end + 1)) {
      const message = JSON.parse(Buffer.concat([...rest, chunk.subarray(0, end)]).toString());
      rest = [];
      const { resolve, reject } = waiting.get(message.id) ?? {};
      waiting.delete(message.id);
      if (message.error) reject?.(new Error(message.error.message));
      else if (resolve) resolve(message.result);
      else for (const listener of listeners) listener(message);
    }
    rest.push(chunk);
  });
  void ended.then(() => {
    for (const { reject } of waiting.values()) reject(new Error('Chromium has ended'));
  });
  /** Sends a command to the browser, or to the target of a session. */
  const send = (method, params = {}, sessionId = undefined) => new Promise((resolve, reject) => {
    waiting.set(++id, { resolve, reject });
    out.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
  });
  return {
    send,
    open: (width, height) => open(send, listeners, width, height),
    async close() {
      await send('Browser.close').catch(() => {});
      await ended;
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Opens an empty page. */
async function open(send, listeners, width, height) {
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
  const session = (method, params) => send(method, params, sessionId);
  let worker;
  const wrong = [];
  const listen = ({ method, params, sessionId: of }) => {
    if (of !== sessionId) return;
    if (method === 'Target.attachedToTarget' && params.targetInfo.type === 'worker') worker = params.sessionId;
    if (method === 'Runtime.exceptionThrown') wrong.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
  };
  listeners.add(listen);
  await session('Runtime.enable');
  await session('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
  await session('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: 'dark' }] });
  const page = {
    send: session,
    /** Uncaught exceptions. */
    wrong,
    goto: (url) => session('Page.navigate', { url }),
    /** The value of an expression, awaited if it is a promise. */
    async evaluate(expression) {
      const { result, exceptionDetails } = await session('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
      if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
      return result.value;
    },
    /** Waits until an expression is true. */
    async until(expression, timeout = 120_000) {
      for (const end = Date.now() + timeout; !(await page.evaluate(expression).catch(() => false)); await sleep(200)) {
        if (Date.now() > end) throw new Error(`not within ${timeout} ms: ${expression}`);
      }
    },
    mouse: (type, x, y, more = {}) => session('Input.dispatchMouseEvent', { type, x, y, ...more }),
    /** A function that sends to the page's worker. */
    async attach() {
      await session('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
      while (!worker) await sleep(20);
      return (method, params) => send(method, params, worker);
    },
    async close() {
      listeners.delete(listen);
      await send('Target.closeTarget', { targetId });
    },
  };
  return page;
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
