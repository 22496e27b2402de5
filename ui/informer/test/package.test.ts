// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { createContext, runInContext } from 'node:vm';
import { build } from 'esbuild';
import { path, server } from './harness.js';

const run = promisify(execFile);

/** The package as npm would publish it, installed in build/consumer. */
async function installed(): Promise<string> {
  const consumer = 'build/consumer';
  rmSync(consumer, { recursive: true, force: true });
  const to = `${consumer}/node_modules/@watchkeeper/informer`;
  mkdirSync(to, { recursive: true });
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', consumer]);
  const [{ filename, files }] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  const names = files.map((file) => file.path);
  for (const name of ['LICENSE', 'README.md', 'package.json', 'dist/index.js', 'dist/index.d.ts', 'src/index.ts']) assert.ok(names.includes(name), `${name} is missing`);
  assert.deepEqual(names.filter((name) => !/^(dist\/[a-z]+\.(js|d\.ts)|src\/[a-z]+\.ts|LICENSE|README\.md|package\.json)$/.test(name)), []);
  await run('tar', ['-xzf', `${consumer}/${filename}`, '-C', to, '--strip-components=1']);
  writeFileSync(`${consumer}/package.json`, '{"type":"module"}');
  return consumer;
}

test('the packed package is imported, and its types are found', { timeout: 120_000 }, async () => {
  await run('npx', ['tsc', '-p', 'tsconfig.build.json']); // as prepack does
  const consumer = await installed();
  server.put(path, 'a');
  writeFileSync(
    `${consumer}/main.ts`,
    `import { parse, stringify } from '@watchkeeper/informer/json';
     import { connect, StatusError, type InformerEvent, type KubernetesObject, type Pod, type Row } from '@watchkeeper/informer';
     const connection = connect(process.argv[2], { parse });
     const things = connection.informer<KubernetesObject & { text: string }>('test/v1/things');
     const pods = connection.informer('v1/pods', { transform: (pod) => pod.spec?.nodeName });
     const rows = connection.informer('v1/pods', { fields: ['spec.nodeName'], rows: true });
     const seen: (InformerEvent<Row> | StatusError | Pod | string | undefined)[] = [pods.store.get('x')];
     rows.on('add', (event) => seen.push(event, event.object[1]));
     // @ts-expect-error rows need fields
     const wrong = () => connection.informer('v1/pods', { rows: true });
     await things.ready();
     console.log([...things.store.keys()].join(), things.store.get('ns/a')!.metadata.name, typeof wrong, stringify(parse('9007199254740993')));
     connection.close();`,
  );
  const options = ['--ignoreConfig', '--skipLibCheck', '--strict', '--target', 'es2023', '--lib', 'es2023,dom,dom.iterable', '--types', 'node'];
  await run('npx', ['tsc', '--module', 'node16', '--moduleResolution', 'node16', '--outDir', `${consumer}/out`, ...options, `${consumer}/main.ts`]).catch(({ stdout }) => assert.fail(stdout));
  await run('npx', ['tsc', '--module', 'esnext', '--moduleResolution', 'bundler', '--noEmit', ...options, `${consumer}/main.ts`]).catch(({ stdout }) => assert.fail(stdout));
  const { stdout } = await run(process.execPath, [`${consumer}/out/main.js`, server.url], { timeout: 60_000 });
  assert.equal(stdout.trim(), 'ns/a a function 9007199254740993');
});

test('it needs nothing but the standards of the web, as Deno has them', async () => {
  const { outputFiles } = await build({ entryPoints: ['src/index.ts'], bundle: true, format: 'iife', globalName: 'library', write: false });
  server.put(path, 'a');
  const web = { fetch, Headers, URL, URLSearchParams, TextDecoder, AbortController, AbortSignal, setTimeout, clearTimeout, queueMicrotask, console };
  const context = createContext({ ...web, url: server.url });
  const keys: string = await runInContext(
    `${outputFiles[0]!.text};
     (async () => {
       const connection = library.connect(url);
       const things = connection.informer('test/v1/things');
       await things.ready();
       connection.close();
       return [typeof process, typeof Buffer, typeof window, typeof document, ...things.store.keys()].join();
     })()`,
    context,
  );
  assert.equal(keys, 'undefined,undefined,undefined,undefined,ns/a');
});

test('the example page has 30 lines and needs only the package', () => {
  const text = readFileSync('example/index.html', 'utf8').replace(/<!-- SPDX.*-->\n/g, '');
  assert.ok(text.trim().split('\n').length <= 30, `${text.trim().split('\n').length} lines`);
  assert.deepEqual(text.match(/from '[^']*'/g), ["from '../dist/index.js'"]);
});
