// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The page's side of the worker that evaluates formulas. */

import { trustedWorker } from '../app/trusted';
import type { Range, Reshaping } from './cells';
import type { Input, Result } from './formulas';
import workerURL from './formulas-worker?worker&url';

export type Question =
  | { kind: 'zone'; zone: string }
  /** The names of the tabs, and after which column and up to which one their columns are bound. */
  | { kind: 'tabs'; names: string[]; bounds: { from: number; to: number }[] }
  | { kind: 'set'; inputs: Input[] }
  | { kind: 'fill'; id: number; tab: number; range: Range; to: number; down: boolean }
  | { kind: 'copy'; id: number; from: number; range: Range; tab: number; row: number; column: number }
  | { kind: 'reshape'; id: number; tab: number; what: Reshaping; at: number; count: number };

export type Answer =
  | { kind: 'ready' }
  | { kind: 'failed'; error: string }
  | { kind: 'results'; results: Result[] }
  /** What is in cells after a change of many. */
  | { kind: 'inputs'; id: number; inputs: Input[]; error?: string };

/** A question that is answered. */
type Asked = Extract<Question, { id: number }>;
type Without<T> = T extends { id: number } ? Omit<T, 'id'> : never;

export interface Engine {
  /** Types into cells. */
  set(inputs: Input[]): void;
  tabs(names: string[], bounds: { from: number; to: number }[]): void;
  /** Asks for a change of many cells, and returns what is in them then. */
  ask(question: Without<Asked>): Promise<Input[]>;
  close(): void;
}

/** Starts the worker. `results` and `failed` are told what it says. */
export function startEngine(zone: string, on: { results(results: Result[]): void; failed(error: string): void }): Engine {
  const worker = trustedWorker(workerURL);
  const open = new Map<number, { resolve: (inputs: Input[]) => void; reject: (error: Error) => void }>();
  let last = 0;
  const post = (question: Question): void => worker.postMessage(question);
  worker.onerror = () => on.failed('the worker could not be loaded');
  worker.onmessage = ({ data }: MessageEvent<Answer>) => {
    if (data.kind === 'results') on.results(data.results);
    else if (data.kind === 'failed') on.failed(data.error);
    else if (data.kind === 'inputs') {
      const { resolve, reject } = open.get(data.id)!;
      open.delete(data.id);
      if (data.error) reject(new Error(data.error));
      else resolve(data.inputs);
    }
  };
  post({ kind: 'zone', zone });
  return {
    set: (inputs) => inputs.length > 0 && post({ kind: 'set', inputs }),
    tabs: (names, bounds) => post({ kind: 'tabs', names, bounds }),
    ask: (question) => new Promise((resolve, reject) => {
      open.set(++last, { resolve, reject });
      post({ ...question, id: last } as Question);
    }),
    close: () => worker.terminate(),
  };
}
