// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { useRef } from 'preact/hooks';
import { help } from '../app/state';
import { STATES } from '../data/state';
import { StripLegend, Swatch } from '../time/legend';
import { AfarLegend } from './afar';
import { useDialog } from './focus';
import { Shape } from './shape';
import { WORDS } from './words';

const KEYS: [string, string][] = [
  ['/', 'filter; Enter or Esc leaves it'], ['← ↑ → ↓', 'move between Pods'], ['Enter', 'show details'], ['A', 'actions on the selected object'], ['Esc', 'close the panel, return to now, clear the filter'],
  ['0', 'sort again and fit to the window'], ['+ −', 'zoom; drag, wheel and two fingers also work'], ['T', 'board or table'], [': or Ctrl K', 'open any kind or object'], ['W', 'Pods in Nodes or in workloads'], ['N', 'go to what needs attention, or hide it'], ['?', 'this help'],
];
const TIME: [string, string][] = [
  ['drag the strip', 'go to a moment'], ['Shift drag', 'select a range; a finger first holds still'], ['two fingers', 'zoom and move the time range'], ['wheel', 'zoom the time range about the pointer; sideways, move it'], [', .', 'previous, next change (of the selected object)'], ['Space', 'play, pause'],
  ['G', 'go to a moment: 14:02:09, 10m, rv:812'], ['C', 'changes around this time'], ['M', 'mark the moment, or remove the mark'], ['Esc', 'back to now'],
  ['in Versions: D', 'compare the version with the shown moment, or with a second one'],
  ['on the strip: ← →', 'previous, next change of the board'], ['on the strip: Shift ← →', 'change the range'],
];
const FILTERS: [string, string][] = [
  ['web', 'in the name'], ['app=web, app!=web', 'a label'], ['ns:shop', 'namespace'], ['node:node-3, node:none', 'Node'], ['owner:checkout', 'workload'],
  ['state:failing', 'state'], ['reason:crash', 'in STATUS'], ['restarts:3', 'at least that many'], ['-ns:kube-system', 'not'],
];

/** Lists the keys, the shapes, the marks of the strip and the terms of the filter. */
export function Help() {
  const element = useRef<HTMLDialogElement>(null);
  const close = (): void => void (help.value = false);
  useDialog(element, close);
  return (
    <dialog ref={element} class="help" aria-label="Help" onClick={(e) => e.target === element.current && close()}>
      <button class="icon close" aria-label="Close the help" onClick={close}>
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path d="M3.4 2 8 6.6 12.6 2 14 3.4 9.4 8l4.6 4.6-1.4 1.4L8 9.4 3.4 14 2 12.6 6.6 8 2 3.4z" /></svg>
      </button>
      <div>
        <section>
          <h2>Keys</h2>
          <dl>{KEYS.map(([key, words]) => <><dt><kbd>{key}</kbd></dt><dd>{words}</dd></>)}</dl>
        </section>
        <section>
          <h2>Time</h2>
          <dl>{TIME.map(([key, words]) => <><dt><kbd>{key}</kbd></dt><dd>{words}</dd></>)}</dl>
        </section>
        <section>
          <h2>Strip</h2>
          <StripLegend />
        </section>
        <section>
          <h2>Shapes</h2>
          <dl>{STATES.map((state) => <><dt><Shape state={state} size={16} /> {state}</dt><dd>{WORDS[state]}</dd></>)}<dt><Swatch mark="unrecorded" /> stale</dt><dd>the hatched board: no contact, the last known state</dd></dl>
        </section>
        <section>
          <h2>From afar</h2>
          <AfarLegend />
        </section>
        <section>
          <h2>Filter</h2>
          <dl>{FILTERS.map(([word, words]) => <><dt><code>{word}</code></dt><dd>{words}</dd></>)}</dl>
        </section>
      </div>
    </dialog>
  );
}
