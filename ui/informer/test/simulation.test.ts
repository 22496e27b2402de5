// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Whatever faults a server has, an informer ends with the server's state, and its events are in order.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect } from '../src/index.js';
import { eventually, Observer } from './observer.js';
import { ApiServer, refuse, type Stream, type Thing } from './server.js';

const plurals = ['pods', 'nodes'];
const path = (plural: string) => '/apis/test/v1/' + plural;
const rounds = Number(process.env.WATCHKEEPER_SIMULATIONS ?? 20);

/** A seeded generator of numbers below n. */
function random(seed: number): (n: number) => number {
  let state = seed * 2654435761;
  return (n) => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 3266489917) >>> 0;
    return state % n;
  };
}

// Side by side, since most of each run is waiting.
describe('simulation', { concurrency: 5 }, () => {
  for (let seed = 1; seed <= rounds; seed++) {
    test(`random faults, seed ${seed}`, async (t) => {
      const pick = random(seed);
      const server = await new ApiServer().start();
      server.multiwatch = seed % 2 === 0;
      const restores = seed % 3 === 0;
      let restore = server.backup();
      const connection = connect(server.url, { silence: 200 });
      t.after(async () => {
        connection.close();
        await server.stop();
      });
      const observers = plurals.map((plural) => new Observer(connection.informer<Thing>('test/v1/' + plural, { pageSize: 3 }), restores));

      const anyStream = (does: (stream: Stream) => void) => {
        const all = [...server.open];
        if (all.length > 0) does(all[pick(all.length)]!);
      };
      const names = (plural: string) =>
        [...server.objects.keys()].filter((key) => key.startsWith(path(plural) + '/')).map((key) => key.slice(path(plural).length + 1));
      const write = () => {
        const plural = plurals[pick(2)]!;
        const there = names(plural);
        switch (pick(8)) {
          case 0:
            if (there.length > 0) server.remove(path(plural), there[pick(there.length)]!);
            break;
          case 1:
            server.remove(path(plural), ...there.slice(0, pick(4)));
            break;
          case 2:
            server.put(path(plural), 'o' + pick(10), 'another', true);
            break;
          default:
            server.put(path(plural), 'o' + pick(10), String(server.rv));
        }
      };
      const faults: (() => unknown)[] = [
        () => anyStream((stream) => stream.cut()),
        () => anyStream((stream) => stream.end()),
        () => anyStream((stream) => server.open.delete(stream)), // half-open
        () => anyStream((stream) => stream.raw(['{"type":', 'nonsense\n', new Uint8Array([0xff, 0x0a])][pick(3)]!)),
        () => anyStream((stream) => stream.send('ERROR', { kind: 'Status', code: [410, 500, 429][pick(3)] })),
        () => server.compact(),
        () => plurals.forEach((plural) => server.bookmark(path(plural))),
        () => server.lists.push((_, response) => refuse(response, [410, 429, 500, 503][pick(4)]!, 'Fault')),
        () => server.lists.push((_, response) => response.destroy()),
        () => server.watches.push((stream) => stream.cut()),
        () => connection.wake(),
        async () => {
          await server.stop();
          for (let n = pick(5); n > 0; n--) write();
          await server.start();
        },
      ];
      const restoreServer = async () => {
        await server.stop();
        restore(server.rv + 1000); // as with --bump-revision
        await server.start();
      };
      if (restores) faults.push(restoreServer);
      for (let i = 0; i < 60; i++) {
        if (restores && pick(10) === 0) restore = server.backup();
        for (let n = pick(4); n > 0; n--) write();
        if (pick(3) === 0) await faults[pick(faults.length)]!();
        await new Promise((resolve) => setTimeout(resolve, pick(8)));
      }
      const settle = async () => {
        for (const [i, plural] of plurals.entries()) {
          const { store, state } = observers[i]!.informer;
          await eventually(`the server's ${plural}, seed ${seed}`, () => {
            connection.wake();
            try {
              const is = [...store].map(([key, { metadata, text }]) => `${key} ${metadata.uid} ${metadata.resourceVersion} ${text}`).sort();
              const want = names(plural).map((name) => {
                const { metadata, text } = server.objects.get(path(plural) + '/' + name)!;
                return `ns/${name} ${metadata.uid} ${metadata.resourceVersion} ${text}`;
              });
              assert.deepEqual(is, want.sort());
              return '';
            } catch (error) {
              return { state, error: String(error), errors: observers[i]!.errors.map(String), requests: server.requests.slice(-5) };
            }
          });
        }
      };
      server.lists.length = server.watches.length = 0;
      await settle();
      if (restores) {
        await restoreServer();
        await settle();
      }
      connection.close();
      for (const observer of observers) observer.finish();
    });
  }
});
