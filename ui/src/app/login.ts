// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Who reads the page, and when they have to log in: after an answer of 401. */

import { batch, effect, signal } from '@preact/signals';
import type { Status } from '../data/protocol';
import { apiError, root } from './api';
import { forgetFailing } from './failing';
import { status } from './state';
import { bearer, authorization, refusals, useToken } from './token';

export interface User {
  username: string;
  groups: string[];
}

/** Why the page asks for a token: there are no credentials, or they are not accepted any more. Empty if it does not ask. */
export const asked = signal<'' | 'needed' | 'expired'>('');
/** The page has a token, and can forget it. */
export const loggedIn = signal(false);
/** Who the API server says the reader is; null if it was not asked, or does not say. */
export const user = signal<User | null>(null);
/** Incremented by each login: what reads the API begins again. `fresh`: as somebody else. */
export const session = signal<{ number: number; fresh: boolean }>({ number: 0, fresh: false });

/** The shortest time between two checks of the credentials, and how long a login may take, in milliseconds. */
const checkInterval = 5000;
const loginTimeout = 10_000;

interface Answer {
  code: number;
  message: string;
  user: User | null;
}

/** Asks the API server who it takes the reader for, with a token or, if that is empty, without one. */
async function whoAmI(token: string): Promise<Answer> {
  const response = await fetch(new URL('apis/authentication.k8s.io/v1/selfsubjectreviews', root()), {
    method: 'POST', headers: { accept: 'application/json', 'content-type': 'application/json', ...authorization(token) }, cache: 'no-store',
    body: JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }),
  });
  if (!response.ok) return { code: response.status, message: (await apiError(response)).message, user: null };
  const info = ((await response.json()) as { status?: { userInfo?: { username?: string; groups?: string[] } } }).status?.userInfo;
  return { code: response.status, message: '', user: info?.username ? { username: info.username, groups: info.groups ?? [] } : null };
}

/** The gateway or the API server could not check the credentials now: 429 is of those that are checked for others. */
const unchecked = (code: number): boolean => code === 429 || code >= 500;

/** Learns who the reader is. */
export async function learnUser(): Promise<void> {
  const token = bearer();
  try {
    const answer = await whoAmI(token);
    if (token === bearer() && answer.user) user.value = answer.user;
  } catch {
    // Then the page does not name them.
  }
}

/** Logs in with a pasted token. Returns why that failed, in words; empty if it did not. */
export async function login(pasted: string): Promise<string> {
  const token = pasted.trim().replace(/^Bearer\s+/i, '');
  if (!token) return 'Paste a token.';
  // Such a header could not be sent.
  if (!/^[\x21-\x7e]+$/.test(token)) return 'This is not a token: it has spaces, line breaks or letters that no token has.';
  let answer: Answer;
  try {
    answer = await whoAmI(token);
  } catch {
    return 'The gateway does not answer. Try again.';
  }
  const why = answer.message && answer.message !== 'Unauthorized' ? ` (${answer.message})` : '';
  if (answer.code === 401) return `The API server does not accept this token${why}. Is it complete, not expired, and of this cluster?`;
  if (unchecked(answer.code)) return `The token could not be checked${why}. Try again.`;
  // Other answers come from API servers that cannot say who the reader is.
  useToken(token);
  batch(() => {
    const before = user.peek();
    const fresh = !before || before.username !== answer.user?.username;
    if (fresh) forgetFailing();
    user.value = answer.user;
    loggedIn.value = true;
    asked.value = '';
    session.value = { number: session.peek().number + 1, fresh };
  });
  setTimeout(() => {
    if (token === bearer() && status.peek().code === 401) asked.value = 'expired';
  }, loginTimeout);
  return '';
}

/** Forgets the token, and everything that was read with it. */
export function logOut(): void {
  useToken('');
  location.reload();
}

let checking = false;
let checked = 0;

/** Asks for a login if the API server does not accept the credentials. A 401 may also come from something behind it. */
async function check(): Promise<void> {
  if (checking || asked.peek()) return;
  checking = true;
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, checked + checkInterval - Date.now())));
  checked = Date.now();
  const token = bearer();
  let answered = false;
  try {
    const { code } = await whoAmI(token);
    answered = !unchecked(code);
    if (token === bearer() && answered && code >= 300) {
      at = status.peek();
      asked.value = token ? 'expired' : 'needed';
    }
  } catch {
    // Without an answer, the page says that there is no contact.
  }
  checking = false;
  if (!answered && status.peek().code === 401) void check();
}

/** The worker's report when the login was asked for. */
let at: Status | null = null;

/** Watches the answers to the page and to the worker. */
export function watchLogin(): void {
  effect(() => {
    if (refusals.value > 0) void check();
  });
  effect(() => {
    if (status.value.code === 401) void check();
  });
  effect(() => {
    const now = status.value;
    // A proxy in front of the page has renewed the credentials.
    if (asked.peek() && now !== at && now.phase === 'live') asked.value = '';
  });
}
