// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** A Kubernetes Status: why a request was refused. */
export interface Status {
  kind: 'Status';
  message?: string;
  reason?: string;
  code?: number;
  details?: { group?: string; kind?: string; retryAfterSeconds?: number; causes?: { reason?: string; message?: string; field?: string }[] };
}

/** An error response of the API server, or an ERROR event of a watch. */
export class StatusError extends Error {
  /** The HTTP status code. */
  readonly code: number;
  /** The reason in one word, such as `Forbidden` or `Expired`. */
  readonly reason: string;
  /** Milliseconds after which to retry, if the server says so; else 0. */
  readonly retryAfter: number;
  /** The whole Status, if the server sent one. */
  readonly status?: Status;

  constructor(code: number, text: string, status?: Status, retryAfter = 0) {
    super(status?.message || text.trim() || `the server answered ${code}`);
    this.name = 'StatusError';
    this.code = status?.code || code;
    this.reason = status?.reason ?? '';
    this.status = status;
    this.retryAfter = Math.min(retryAfter || (status?.details?.retryAfterSeconds ?? 0) * 1000, 60_000);
  }

  /** The server will give the same answer until somebody changes something. */
  get refusal(): boolean {
    return this.code >= 400 && this.code < 500 && ![408, 410, 425, 429].includes(this.code);
  }
}

/** How to reach an API server. */
export interface Source {
  fetch: typeof fetch;
  headers: () => HeadersInit | Promise<HeadersInit>;
  accept: string;
  parse: (text: string) => any;
}

/** GETs a URL. Throws a StatusError for responses other than 2xx. */
export async function get(source: Source, url: string, signal: AbortSignal): Promise<Response> {
  const headers = new Headers(await source.headers());
  headers.set('Accept', source.accept);
  const response = await source.fetch(url, { headers, signal, cache: 'no-store' });
  if (response.ok) return response;
  const text = await response.text();
  let status: Status | undefined;
  try {
    status = JSON.parse(text);
  } catch {
    // Proxies answer in HTML.
  }
  if (status?.kind !== 'Status') status = undefined;
  throw new StatusError(response.status, text.slice(0, 200), status, retryAfter(response.headers.get('Retry-After')));
}

/** Parses a Retry-After header, to milliseconds. */
function retryAfter(value: string | null): number {
  if (!value) return 0;
  const seconds = Number(value);
  return Math.max(0, (Number.isNaN(seconds) ? Date.parse(value) - Date.now() : seconds * 1000) || 0);
}

/**
 * Yields the lines of a body, those of one chunk at a time. It throws if the
 * text is not UTF-8, ends within a line, or has a line of more than maxLength
 * UTF-16 units.
 */
export async function* lines(body: ReadableStream<Uint8Array>, signal: AbortSignal, maxLength = 64 << 20): AsyncGenerator<string[]> {
  const reader = body.getReader();
  // Not every fetch ends the body when its request is aborted.
  const cancel = () => void reader.cancel().catch(() => {});
  signal.addEventListener('abort', cancel);
  if (signal.aborted) cancel();
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest: string[] = []; // of an incomplete line
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const text = decoder.decode(value, { stream: !done });
      const end = text.lastIndexOf('\n');
      if (end >= 0) {
        rest.push(text.slice(0, end));
        yield rest.join('').split('\n').filter((line) => line !== '');
        rest = [];
        length = 0;
      }
      rest.push(text.slice(end + 1));
      length += text.length - end - 1;
      if (length > maxLength) throw new Error('the stream contains a line that is too long');
      if (done) break;
    }
    if (rest.join('') !== '') throw new Error('the stream ended within a line');
  } finally {
    signal.removeEventListener('abort', cancel);
    cancel();
  }
}
