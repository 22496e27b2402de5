// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// An API server for each test, and informers of it.

import { afterEach, beforeEach } from 'node:test';
import { connect, type ConnectOptions, type InformerOptions } from '../src/index.js';
import { eventually, Observer } from './observer.js';
import { ApiServer, type Stream, type Thing } from './server.js';

export const path = '/apis/test/v1/things';
export let server: ApiServer;
export const observers: Observer<Thing>[] = [];

beforeEach(async () => {
  server = await new ApiServer().start();
});

afterEach(async () => {
  const all = observers.splice(0);
  for (const observer of all) observer.informer.stop();
  await server.stop();
  for (const observer of all) observer.finish();
});

export function observe(options: InformerOptions<Thing> = {}, connection: ConnectOptions = {}, restored = false): Observer<Thing> {
  const informer = connect(server.url, connection).informer<Thing>('test/v1/things', options);
  const observer = new Observer(informer, restored);
  observers.push(observer);
  return observer;
}

/** An observer whose informer is live. */
export async function live(options: InformerOptions<Thing> = {}, connection: ConnectOptions = {}, restored = false): Promise<Observer<Thing>> {
  const observer = observe(options, connection, restored);
  await watching();
  return observer;
}

export const watching = () => eventually('a watch', () => server.watching(path).length === 0);

/** Serves the next watch with a script, which may continue as a normal one. */
export function scripted(script: (stream: Stream) => void): void {
  server.watches.push(script);
}
