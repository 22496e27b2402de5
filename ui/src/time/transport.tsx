// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The playback buttons beside the strip, and the shown moment in large type over the board. */

import { useState } from 'preact/hooks';
import { ended, now } from '../app/now';
import { changes, marks, mode, selection } from '../app/state';
import { age } from '../data/quantity';
import type { History } from './history';
import { playhead, setSpeed, speed, SPEEDS, step, toggleMark, togglePlay, toLive } from './playback';
import { clock } from './words';

const ICON = {
  back: 'M4 2.5h2v11H4zM13 2.5v11L6.5 8z', on: 'M10 2.5h2v11h-2zM3 2.5v11L9.5 8z', play: 'M4 2.2v11.6L13.5 8z', pause: 'M4 2.500h3v11H4zM9 2.500h3v11H9z',
  mark: 'M3.5 1.500h9v13L8 11l-4.5 3.500z', list: 'M2 3h3v2H2zM7 3.300h7v1.400H7zM2 7h3v2H2zM7 7.300h7v1.400H7zM2 11h3v2H2zM7 11.300h7v1.400H7z',
};
const Icon = ({ d }: { d: string }) => <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path d={d} /></svg>;

export function Transport({ history }: { history: History }) {
  const at = mode.value;
  const shown = playhead.value;
  const [message, setMessage] = useState('');
  const go = (direction: -1 | 1): void => {
    step(history, direction).then((found) => {
      if (found || direction > 0) return;
      setMessage('No earlier change in the time range of the strip');
      setTimeout(() => setMessage(''), 2500);
    }, () => {});
  };
  const marked = shown > 0 && marks.value.some((mark) => Math.abs(mark - shown) < 500);
  return (
    <div class="transport" role="group" aria-label="Time">
      {message && <p class="message" role="status">{message}</p>}
      <button class="icon" aria-label="Previous change" title="Previous change (,)" onClick={() => go(-1)}><Icon d={ICON.back} /></button>
      <button class="icon" aria-label={at?.speed ? 'Pause' : 'Play'} title={at?.speed ? 'Pause (Space)' : 'Play (Space)'} onClick={togglePlay}><Icon d={at?.speed ? ICON.pause : ICON.play} /></button>
      <button class="icon" aria-disabled={!at} aria-label="Next change" title="Next change (.)" onClick={() => go(1)}><Icon d={ICON.on} /></button>
      <select aria-label="Speed" title="Playback speed" value={speed.value} onChange={(e) => setSpeed(Number(e.currentTarget.value))}>
        {SPEEDS.map((s) => <option key={s} value={s}>{s}×</option>)}
      </select>
      <button class="icon" aria-pressed={marked} aria-label="Mark this moment" title={marked ? 'Remove the mark (M)' : 'Mark this moment (M)'} onClick={toggleMark}><Icon d={ICON.mark} /></button>
      <button class="icon" aria-pressed={changes.value} aria-label="Changes" title="Changes around this time (C)" onClick={toggleChanges}><Icon d={ICON.list} /></button>
      <button class={`now ${at ? '' : 'on'}`} onClick={toLive} title={ended.value ? 'To the end (Esc)' : 'Back to now (Esc)'}>{at ? 'to ' : ''}{ended.value ? 'the end' : 'now'}</button>
    </div>
  );
}

/** Shows or hides the list of changes. */
export function toggleChanges(): void {
  changes.value = !changes.value || selection.value !== null;
  selection.value = null;
}

/** The shown moment, in large type so that nobody mistakes the past for now. */
export function Moment() {
  const at = mode.value;
  if (!at) return null;
  const shown = playhead.value;
  return (
    <div class="moment" role="status">
      <b>{shown ? clock(shown) : at.at}</b>
      <span>{shown ? `${age((now() - shown) / 1000)} ${ended.value ? 'before the end' : 'ago'}` : ''}{at.speed ? ` · playing at ${at.speed}×` : ''}</span>
    </div>
  );
}
