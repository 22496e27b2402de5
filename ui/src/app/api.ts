// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The API beside the page: where it is, and asking it for whole objects. */

const page = new URL('.', location.href);
let config = { api: '../', extension: '../watchkeeper/v1/' };

/** Learns from config.json beside the page where the API is; without one it is above the page. */
export async function configure(): Promise<void> {
  try {
    const response = await fetch(new URL('config.json', page));
    if (response.ok) config = { ...config, ...((await response.json()) as typeof config) };
  } catch {
    // The page can say itself that there is no connection.
  }
}

/** The address of the API, and of what Kubernetes does not have. */
export const root = (): URL => new URL(config.api, page);
export const extension = (): URL => new URL(config.extension, page);

/** What the API answered when it was not what was asked for, in its own words. */
export class ApiError extends Error {
  constructor(readonly code: number, message: string) {
    super(message);
  }
}

/** The address of an API path, at a moment of the past if there is one. */
export const apiURL = (path: string, at = ''): string => new URL(at ? `at/${at}/${path.replace(/^\//, '')}` : path.replace(/^\//, ''), root()).href;

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
