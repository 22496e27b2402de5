// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { defaultClientConditions, defineConfig, type Plugin } from 'vite';

import lock from './package-lock.json' with { type: 'json' };

/** The gateway of the development server; WATCHKEEPER overrides it. */
const env = (globalThis as { process?: { env: Record<string, string | undefined> } }).process?.env ?? {};
const gateway = env.WATCHKEEPER ?? 'http://127.0.0.1:8001';
const proxy = Object.fromEntries(
  ['/api', '/apis', '/at', '/watchkeeper', '/version', '/readyz'].map((path) => [path, { target: gateway }]),
);

/**
 * Fails if the page has code of a package that is a dependency for development only: a
 * release comes with the licences of the others (deploy/release).
 */
function onlyDependencies(): Plugin {
  const packages = lock.packages as Record<string, { dev?: boolean } | undefined>;
  return {
    name: 'only-dependencies',
    generateBundle(_, bundle) {
      for (const output of Object.values(bundle)) {
        for (const id of output.type === 'chunk' ? Object.keys(output.modules) : output.originalFileNames) {
          const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(id)?.[1];
          const found = packages[`node_modules/${name}`];
          if (name && (!found || found.dev)) this.error(`${id} is in the page, but ${name} is no dependency of it`);
        }
      }
    },
  };
}

/** Removes the comments and the indentation of the shaders, which are strings. */
const shortShaders: Plugin = {
  name: 'short-shaders',
  enforce: 'pre',
  transform: (code, id) => (id.endsWith('/gl-shaders.ts') ? { code: code.replace(/ *\/\/ .*$/gm, '').replace(/\n\s+/g, '\n'), map: null } : null),
};

/** Workers that are not started at first, and files that they load. */
const laterWorkers = ['formulas-worker'];
const later = ({ names }: { names: string[] }): string => `assets/${names.some((name) => name.endsWith('.wasm')) ? 'later-' : ''}[name]-[hash][extname]`;

/**
 * All URLs are relative, so that the page works below any path. Nothing is
 * inlined, because the Content-Security-Policy forbids inline scripts and styles.
 * "--mode bench" builds the benchmark page instead, which generates synthetic
 * clusters.
 */
export default defineConfig(({ mode }) => ({
  base: mode === 'bench' ? './' : env.NODE_ENV === 'development' ? '/ui/' : './',
  // Bundle the informer from its sources, without building it first.
  resolve: { conditions: ['source', ...defaultClientConditions] },
  server: { proxy },
  preview: { proxy },
  plugins: [onlyDependencies(), shortShaders],
  worker: {
    format: 'es' as const, plugins: () => [onlyDependencies()],
    rollupOptions: { output: { entryFileNames: ({ name }: { name: string }) => `assets/${laterWorkers.includes(name) ? 'later-' : ''}[name]-[hash].js`, assetFileNames: later } },
  },
  build: {
    target: 'es2022',
    outDir: mode === 'bench' ? 'dist-bench' : 'dist',
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    rollupOptions: {
      // What is not loaded at first: see embed_test.go.
      output: {
        assetFileNames: later,
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            // now.ts is too small for a file of its own.
            { name: 'contact', test: /\/src\/app\/(contact|now)\.ts$/ },
            // What every request needs of the informer.
            { name: 'json', test: /\/informer\/src\/json\.ts$/ },
            // What the strip and the list of changes share.
            { name: 'later-plot', test: /\/src\/time\/plot\.ts$|\/node_modules\/uplot\// },
            // What the lists of changes and of versions share.
            { name: 'later-lists', test: /\/src\/time\/(change-row|unrecorded)\.tsx?$/ },
            // What several of the parts that are loaded later use.
            { name: 'later-shared', test: /\/(informer\/src|src\/(kinds|spreadsheet|write|actions)|src\/panel(?=\/(copy|diff|difference|yaml)\.)|src\/shell(?=\/(rows|scrolling)\.)|src\/app(?=\/frame\.)|src\/time(?=\/(known|nearest)\.))\/(?!(index|view|opener|table|search)\.)/, minShareCount: 2 },
          ],
        },
        chunkFileNames: (chunk: { isDynamicEntry: boolean }) => `assets/${chunk.isDynamicEntry ? 'later-' : ''}[name]-[hash].js`,
      },
      ...(mode === 'bench' ? { input: 'bench/index.html' } : {}),
      // Reading a signal's value subscribes to it, so unused reads must stay.
      treeshake: { propertyReadSideEffects: 'always' as const },
    },
  },
}));
