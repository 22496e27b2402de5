// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

interface Policy {
  createScriptURL(url: string): string;
}
interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): Policy;
}

/**
 * Starts a worker from a script of this origin. The page is served with
 * `require-trusted-types-for 'script'`, which requires that script URLs come
 * from a Trusted Types policy.
 */
export function trustedWorker(url: string, name = ''): Worker {
  const absolute = new URL(url, import.meta.url);
  if (absolute.origin !== location.origin) throw new Error('a worker of another origin');
  const types = (window as unknown as { trustedTypes?: TrustedTypes }).trustedTypes;
  const trusted = types ? types.createPolicy('watchkeeper', { createScriptURL: (text) => text }).createScriptURL(absolute.href) : absolute.href;
  return new Worker(trusted, { type: 'module', name });
}
