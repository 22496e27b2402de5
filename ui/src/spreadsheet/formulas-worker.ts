// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The worker of the spreadsheet: see formulas.ts and engine.ts. */

import init from '@ironcalc/wasm';
import wasm from '@ironcalc/wasm/wasm_bg.wasm?url';
import type { Answer, Question } from './engine';
import { Formulas, type Input } from './formulas';

const scope = self as unknown as { postMessage(answer: Answer): void; onmessage: (event: MessageEvent<Question>) => void };
/** Time of which the results are evaluated again, in milliseconds. */
const second = 1000;

let formulas: Formulas | null = null;
/** What came before IronCalc was loaded. */
const waiting: Question[] = [];
/** How many bound columns each tab has, and where its objects begin and end. */
let bounds: { from: number; to: number }[] = [];
let due = false;
let busyUntil = 0;

init({ module_or_path: new URL(wasm, self.location.href) }).then(
  () => {
    formulas = new Formulas(zone);
    scope.postMessage({ kind: 'ready' });
    for (const question of waiting.splice(0)) answer(question);
  },
  (error: unknown) => scope.postMessage({ kind: 'failed', error: String(error) }),
);

let zone = 'UTC';
scope.onmessage = ({ data }) => {
  if (data.kind === 'zone') zone = data.zone;
  else if (formulas) answer(data);
  else waiting.push(data);
};

setInterval(() => formulas?.volatile && schedule(), second);

function answer(question: Question): void {
  const on = formulas!;
  const bound = (tab: number, _: number, column: number): boolean => column > bounds[tab]?.from && column <= bounds[tab].to;
  try {
    let inputs: Input[] = [];
    if (question.kind === 'tabs') {
      bounds = question.bounds;
      on.tabs(question.names);
    } else if (question.kind === 'set') on.set(question.inputs, bound);
    else if (question.kind === 'fill') inputs = on.fill(question.tab, question.range, question.to, question.down);
    else if (question.kind === 'copy') inputs = on.copy(question.from, question.range, question.tab, question.row, question.column);
    else if (question.kind === 'reshape') inputs = on.reshape(question.tab, question.what, question.at, question.count);
    if ('id' in question) scope.postMessage({ kind: 'inputs', id: question.id, inputs });
    schedule();
  } catch (error) {
    if ('id' in question) scope.postMessage({ kind: 'inputs', id: question.id, inputs: [], error: String(error) });
    else scope.postMessage({ kind: 'failed', error: String(error) });
  }
}

/** Evaluates soon: together with what else comes, and not all of the time. */
function schedule(): void {
  if (due) return;
  due = true;
  setTimeout(() => {
    due = false;
    const began = performance.now();
    const results = formulas!.evaluate();
    const took = performance.now() - began;
    busyUntil = performance.now() + took;
    if (results.length > 0) scope.postMessage({ kind: 'results', results });
  }, Math.max(16, busyUntil - performance.now()));
}
