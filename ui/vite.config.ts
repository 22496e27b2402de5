// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { defaultClientConditions, defineConfig } from 'vite';

/** The gateway that the development server and the bench page ask; WATCHKEEPER overrides it. */
const env = (globalThis as { process?: { env: Record<string, string | undefined> } }).process?.env ?? {};
const gateway = env.WATCHKEEPER ?? 'http://127.0.0.1:8001';
const proxy = Object.fromEntries(
  ['/api', '/apis', '/at', '/watchkeeper', '/version', '/readyz'].map((path) => [path, { target: gateway }]),
);

/**
 * All addresses are relative, so that the page works below any path. Nothing
 * is inlined: the page is served with a Content-Security-Policy that lets no
 * inline script or style run. "--mode bench" builds the bench page instead,
 * which has a generator of synthetic clusters that is not in the page itself.
 */
export default defineConfig(({ mode }) => ({
  base: mode === 'bench' ? './' : env.NODE_ENV === 'development' ? '/ui/' : './',
  // The informer is taken as it is written: it needs no build before this one.
  resolve: { conditions: ['source', ...defaultClientConditions] },
  server: { proxy },
  preview: { proxy },
  worker: { format: 'es' as const },
  build: {
    target: 'es2022',
    outDir: mode === 'bench' ? 'dist-bench' : 'dist',
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    rollupOptions: {
      ...(mode === 'bench' ? { input: 'bench/index.html' } : {}),
      // Reading a signal's value subscribes to it: a read is not to be left out because nothing is done with it.
      treeshake: { propertyReadSideEffects: 'always' as const },
    },
  },
}));
