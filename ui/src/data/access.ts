// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The worker's requests: with the reader's token, and the question in which namespaces the reader may list Pods. */

import type { Status } from '@watchkeeper/informer';

let token = '';

/** Uses a token from now on. It is nowhere but in this variable: see app/token.ts. */
export const useToken = (given: string): void => void (token = given);

/** The header of a request. */
export const authorization = (): Record<string, string> => (token ? { authorization: `Bearer ${token}` } : {});

/** An error response. */
export class Refused extends Error {
  constructor(readonly code: number, message: string, readonly details?: Status['details']) {
    super(message);
  }
}

/** GETs a URL. Throws Refused for an error response. */
export async function get(url: string | URL, signal: AbortSignal): Promise<Response> {
  const response = await fetch(url, { headers: { accept: 'application/json', ...authorization() }, signal });
  if (response.ok) return response;
  const text = await response.text();
  let message = text.slice(0, 300);
  let details: Status['details'];
  try {
    ({ message = message, details } = JSON.parse(text) as Status);
  } catch {
    // Not a Status: show its text.
  }
  throw new Refused(response.status, message || response.statusText, details);
}

/** The answer of /watchkeeper/v1/access. */
export interface Access {
  all: boolean;
  namespaces: string[];
  incomplete: boolean;
}

/** Asks in which namespaces the reader may list Pods. */
export async function askAccess(extension: string, signal: AbortSignal): Promise<Access> {
  return (await (await get(new URL('access?resource=pods', extension), signal)).json()) as Access;
}

/** How many namespaces are shown: each has a watch. With HTTP/1.1, browsers open six connections, and 180 watches are two of them. */
export const maxNamespaces = 180;
