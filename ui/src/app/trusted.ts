// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

interface Policy {
  createScriptURL(url: string): string;
}
interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): Policy;
}

let policy: Policy | null = null;

/**
 * Starts a worker from a script of this origin. The page is served with
 * `require-trusted-types-for 'script'`, which requires that script URLs come
 * from a Trusted Types policy; there may be only one of its name.
 */
export function trustedWorker(url: string, name = ''): Worker {
  const absolute = new URL(url, import.meta.url);
  if (absolute.origin !== location.origin) throw new Error('a worker of another origin');
  const types = (window as unknown as { trustedTypes?: TrustedTypes }).trustedTypes;
  policy ??= types?.createPolicy('watchkeeper', { createScriptURL: (text) => text }) ?? null;
  return new Worker(policy ? policy.createScriptURL(absolute.href) : absolute.href, { type: 'module', name });
}
