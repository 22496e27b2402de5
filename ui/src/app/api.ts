// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The API beside the page: where it is, and asking it for whole objects. */

/** The address of the API: what the page is below, wherever it is mounted. */
export const root = new URL('..', new URL('.', location.href));

/** What the API answered when it was not what was asked for, in its own words. */
export class ApiError extends Error {
  constructor(readonly code: number, message: string) {
    super(message);
  }
}

/** The address of an API path, at a moment of the past if there is one. */
export const apiURL = (path: string, at = ''): string => new URL(at ? `at/${at}/${path.replace(/^\//, '')}` : path.replace(/^\//, ''), root).href;

/** Asks for an object. */
export async function getJSON<T>(path: string, at = '', signal?: AbortSignal): Promise<T> {
  const response = await fetch(apiURL(path, at), { headers: { accept: 'application/json' }, signal });
  if (response.ok) return (await response.json()) as T;
  throw await apiError(response);
}

/** The error that a response tells of. */
export async function apiError(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    return new ApiError(response.status, (JSON.parse(text) as { message?: string }).message ?? text);
  } catch {
    return new ApiError(response.status, text.slice(0, 300) || response.statusText);
  }
}
