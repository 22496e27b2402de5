// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Whether the API server behind the gateway can be reached. The gateway goes on
 * serving what it knows while it cannot, and its watches are silent then, as
 * they are while nothing happens.
 */

import { signal } from '@preact/signals';
import { apiError, apiURL } from './api';

/** How often it is asked, and how often while it does not answer, in milliseconds. */
const PACE = 10_000;
const SOON = 3_000;
/** How long an answer is waited for. */
const PATIENCE = 8_000;

/** Since when it cannot be reached, in milliseconds since 1970, and why; null while it can. */
export const unreachable = signal<{ since: number; text: string } | null>(null);

/** Asks now and then, for as long as the page is seen. */
export async function watchUpstream(): Promise<void> {
  let answered = Date.now();
  for (;;) {
    if (!document.hidden) {
      const text = await ask();
      if (text) unreachable.value = { since: answered, text };
      else {
        answered = Date.now();
        unreachable.value = null;
      }
    }
    await new Promise((go) => setTimeout(go, unreachable.value ? SOON : PACE));
  }
}

/** What is wrong; empty if nothing is. Who may not ask has an answer all the same. */
async function ask(): Promise<string> {
  try {
    const response = await fetch(apiURL('/readyz'), { signal: AbortSignal.timeout(PATIENCE), cache: 'no-store' });
    if (response.status < 500) return '';
    const { message } = await apiError(response);
    return /unreachable/.test(message) ? 'The API server cannot be reached.' : 'The API server is not ready.';
  } catch (error) {
    // That the gateway itself does not answer is noticed elsewhere, and sooner.
    return error instanceof DOMException && error.name === 'TimeoutError' ? 'The API server does not answer.' : '';
  }
}
