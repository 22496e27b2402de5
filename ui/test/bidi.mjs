// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Debian's Firefox, headless, driven by WebDriver BiDi (https://w3c.github.io/webdriver-bidi/).

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { shots } from './browser.mjs';
import { start } from './cluster.mjs';
import { gestures } from './touch.mjs';

/** Dark colours as in the tests in Chromium, touch events without a touch screen, and no requests to Mozilla. */
const PREFERENCES = {
  'layout.css.prefers-color-scheme.content-override': 0,
  'dom.w3c_touch_events.enabled': 1,
  'app.normandy.enabled': false,
  'browser.aboutwelcome.enabled': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
};

/** The keys that have a code in WebDriver. */
const KEYS = { Escape: '\uE00C', Enter: '\uE007', Home: '\uE011', ArrowUp: '\uE013', ArrowDown: '\uE015' };

/** Starts a Firefox. The result is open(url, size), which opens a page, and close(). */
export async function launchFirefox() {
  const profile = mkdtempSync(join(tmpdir(), 'watchkeeper-firefox-'));
  writeFileSync(join(profile, 'user.js'), Object.entries(PREFERENCES).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`).join(''));
  const command = process.env.FIREFOX ?? 'firefox-esr';
  const firefox = await start(command, ['--headless', '--remote-debugging-port=0', '--profile', profile, '--no-remote'], /WebDriver BiDi listening on/);
  const close = async () => {
    await firefox.stop();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const connection = await connect(`${/ws:\S+/.exec(firefox.line)[0]}/session`);
    await connection.send('session.new', { capabilities: {} });
    await connection.send('session.subscribe', { events: ['log.entryAdded'] });
    return { open: (url, size) => open(connection, url, size), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Connects to a WebSocket. The result is send(method, params), which waits for the answer, and on(method, listener). */
async function connect(url) {
  const socket = new WebSocket(url);
  const waiting = new Map();
  const listeners = [];
  let last = 0;
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = (event) => reject(new Error(`${url}: ${event.message ?? 'no connection'}`));
  });
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === 'event') {
      for (const { method, listener } of listeners) if (method === message.method) listener(message.params);
      return;
    }
    const { resolve, reject, method } = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.type === 'error') reject(new Error(`${method}: ${message.error}: ${message.message}`));
    else resolve(message.result);
  };
  socket.onclose = () => {
    for (const { reject, method } of waiting.values()) reject(new Error(`${method}: Firefox has closed the connection`));
    waiting.clear();
  };
  return {
    on: (method, listener) => listeners.push({ method, listener }),
    send: (method, params) => new Promise((resolve, reject) => {
      const id = ++last;
      waiting.set(id, { resolve, reject, method });
      socket.send(JSON.stringify({ id, method, params }));
    }),
  };
}

/** Opens a page of a size. clean(page) of browser.mjs fails if it had an error. */
async function open({ send, on }, url, { width, height }) {
  const { context } = await send('browsingContext.create', { type: 'tab' });
  const wrong = [];
  on('log.entryAdded', ({ level, text, source }) => {
    if (level === 'error' && source.context === context) wrong.push(text);
  });
  await send('browsingContext.setViewport', { context, viewport: { width, height } });
  const act = (...actions) => send('input.performActions', { context, actions });
  const point = ({ x, y }) => ({ x: Math.round(x), y: Math.round(y) });
  const mouse = (...actions) => act({ type: 'pointer', id: 'mouse', parameters: { pointerType: 'mouse' }, actions });
  let pressed = 0;
  /** The actions of one finger in a step. */
  const actionsOf = ({ type, points }, finger) => {
    if (type === 'up') return [{ type: 'pointerUp', button: 0 }];
    if (type === 'move') return [{ type: 'pointerMove', ...point(points[finger]), duration: 16 }];
    return [{ type: 'pointerMove', ...point(points[finger]) }, { type: 'pointerDown', button: 0 }];
  };
  const touch = (steps) => {
    if (steps[0].type === 'down') pressed = steps[0].points.length;
    return act(...Array.from({ length: pressed }, (_, finger) => ({
      type: 'pointer', id: `finger ${finger}`, parameters: { pointerType: 'touch' }, actions: steps.flatMap((step) => actionsOf(step, finger)),
    })));
  };

  const page = {
    wrong,
    goto: (to) => send('browsingContext.navigate', { context, url: to, wait: 'complete' }),
    close: () => send('browsingContext.close', { context }),
    /** Evaluates an expression, or a function with an argument, whose result can be written as JSON. */
    async evaluate(what, argument) {
      const expression = typeof what === 'string' ? what : `(${what})(${JSON.stringify(argument) ?? ''})`;
      const answer = await send('script.evaluate', { expression: `(async () => JSON.stringify(await (${expression})))()`, target: { context }, awaitPromise: true });
      if (answer.type === 'exception') throw new Error(answer.exceptionDetails.text);
      return answer.result.value === undefined ? undefined : JSON.parse(answer.result.value);
    },
    /** The text of an element; empty if there is none. */
    text: (selector) => page.evaluate((selector) => document.querySelector(selector)?.innerText.trim() ?? '', selector),
    /** The place of an element in the window. */
    async box(selector) {
      const box = await page.evaluate((selector) => document.querySelector(selector)?.getBoundingClientRect().toJSON(), selector);
      if (!box) throw new Error(`there is no ${selector}`);
      return box;
    },
    /** Clicks a point, or the middle of an element. */
    async click(at) {
      const { x, y } = typeof at === 'string' ? await page.middle(at) : at;
      await mouse({ type: 'pointerMove', ...point({ x, y }) }, { type: 'pointerDown', button: 0 }, { type: 'pointerUp', button: 0 });
    },
    async middle(selector) {
      const { x, y, width, height } = await page.box(selector);
      return { x: x + width / 2, y: y + height / 2 };
    },
    mouse: {
      press: (from, to) => mouse({ type: 'pointerMove', ...point(from) }, { type: 'pointerDown', button: 0 }, { type: 'pointerMove', ...point(to), duration: 50 }),
      move: (to) => mouse({ type: 'pointerMove', ...point(to), duration: 50 }),
      up: () => mouse({ type: 'pointerUp', button: 0 }),
    },
    /** Presses the keys of a text, or one key with a name. */
    type: (text) => act({ type: 'key', id: 'keys', actions: (text in KEYS ? [KEYS[text]] : [...text]).flatMap((value) => [{ type: 'keyDown', value }, { type: 'keyUp', value }]) }),
    fingers: gestures(touch),
    /** Saves a picture for people to look at. */
    async shot(name) {
      const { data } = await send('browsingContext.captureScreenshot', { context });
      mkdirSync(shots, { recursive: true });
      const png = Buffer.from(data, 'base64');
      writeFileSync(`${shots}${name}.png`, png);
      return png;
    },
  };
  await page.goto(url);
  return page;
}
