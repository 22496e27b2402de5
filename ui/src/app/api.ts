// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The addresses of the API, and requests for whole objects. */

import { parse } from '@watchkeeper/informer/json';
import { inWords, type Details } from '../time/refusals';
import { encoded, segment } from './path';
import { authorization, refusals } from './token';

const page = new URL('.', location.href);
let config = { api: '../', extension: '../watchkeeper/v1/' };

/** Reads the API's addresses from config.json next to the page; by default the API is one level above the page. */
export async function configure(): Promise<void> {
  try {
    const response = await fetch(new URL('config.json', page));
    if (response.ok) config = { ...config, ...((await response.json()) as typeof config) };
  } catch {
    // The page shows that there is no connection.
  }
}

/** The addresses of the Kubernetes API and of Watchkeeper's own. */
export const root = (): URL => new URL(config.api, page);
export const extension = (): URL => new URL(config.extension, page);

/** An error response of the API, with its message in the words of the page. */
export class ApiError extends Error {
  constructor(readonly code: number, message: string, readonly details?: Details) {
    super(message);
  }
}

export type Query = Record<string, string> | [string, string][];

const withQuery = (path: string, query: Query, base: URL): string => {
  const url = new URL(encoded(path.replace(/^\//, '')), base);
  url.search = new URLSearchParams(query).toString();
  return url.href;
};

/** The URL of an API path, below /at if a moment of the past is given. */
export const apiURL = (path: string, at = '', query: Query = {}): string => withQuery(path, query, at ? new URL(`at/${segment(at)}/`, root()) : root());

/** The URL of a path of Watchkeeper's own API. */
export const extensionURL = (path: string, query: Query = {}): string => withQuery(path, query, extension());

/** How often a GET is made again that the server puts off, with a Retry-After; client-go's limit is 10, without anybody who looks on. */
const maxRetries = 3;

/** Requests a URL with the reader's token, if there is one. Of a request without an answer, the browser says only that it failed. */
export async function request(url: string | URL, init?: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> }): Promise<Response> {
  try {
    for (let retry = 0; ; retry++) {
      const response = await fetch(url, { ...init, headers: { ...init?.headers, ...authorization() } });
      if (response.status === 401) refusals.value++;
      const seconds = Number(response.headers.get('Retry-After'));
      if (init?.method || ![429, 503].includes(response.status) || !(seconds > 0 && seconds <= 5) || retry === maxRetries) return response;
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      init?.signal?.throwIfAborted();
    }
  } catch (error) {
    throw error instanceof TypeError ? new Error('The gateway does not answer.') : error;
  }
}

/** The JSON of a response. Integers that a number cannot hold are bigint: what is written back has their digits. */
export const jsonOf = async <T>(response: Response): Promise<T> => parse(await response.text()) as T;

/** Requests JSON. Throws an ApiError for an error response. */
export async function askJSON<T>(url: string | URL, signal?: AbortSignal, accept?: string): Promise<T> {
  const response = await request(url, { signal, ...(accept && { headers: { accept } }) });
  if (response.ok) return jsonOf<T>(response);
  throw await apiError(response);
}

/** Requests an object, a list or a document of the API. */
export const getJSON = async <T>(path: string, at = '', signal?: AbortSignal, { accept = 'application/json', query }: { accept?: string; query?: Query } = {}): Promise<T> => askJSON<T>(apiURL(path, at, query), signal, accept);

/** Accepts a list of the metadata alone. */
export const METADATA = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

/** The words of what was thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A whole object, which may be a Secret, and what is said before it. With these the API server begins why it cannot read what a patch makes of the object. */
const WHOLE = /(?: ?"" is invalid: patch: )?Invalid value: "\{[^"\\]*(?:\\.[^"\\]*)*": /g;

/** Makes an error of a response. */
export async function apiError(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const { message, details } = JSON.parse(text) as { message?: string; details?: Details };
    return new ApiError(response.status, inWords(message ?? text, details).replace(WHOLE, ''), details);
  } catch {
    return new ApiError(response.status, text.slice(0, 300) || response.statusText);
  }
}
