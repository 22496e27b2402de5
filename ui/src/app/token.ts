// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The bearer token that the reader has pasted. It is in this variable and in the
 * worker's, and nowhere else: not in the browser's storage, a cookie, the URL, the
 * document or the console. It goes with the tab.
 */

import { signal } from '@preact/signals';

let token = '';

/** The token; empty without one. A proxy in front of the page may add credentials then. */
export const bearer = (): string => token;

/** Uses a token from now on. */
export const useToken = (given: string): void => void (token = given);

/** The header of a request, for a token. */
export const authorization = (given = token): Record<string, string> => (given ? { authorization: `Bearer ${given}` } : {});

/** How many requests of the page were answered with 401: see login.ts. */
export const refusals = signal(0);
