// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The playback buttons next to the strip, and the shown moment in large type over the board. */

import { ended, now } from '../app/now';
import { changes, marks, mode, selection } from '../app/state';
import { switchZone, utc, zoneName } from '../app/zone';
import { GoTo } from './goto';
import type { History } from './history';
import { StripLegend } from './legend';
import { playhead, setSpeed, speed, SPEEDS, step, stepMessage, toggleMark, togglePlay, toLive } from './playback';
import { awayWords, clock } from './words';

const ICON = {
  back: 'M4 2.5h2v11H4zM13 2.5v11L6.5 8z', on: 'M10 2.5h2v11h-2zM3 2.5v11L9.5 8z', play: 'M4 2.2v11.6L13.5 8z', pause: 'M4 2.500h3v11H4zM9 2.500h3v11H9z',
  clock: 'M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zm0 1.500a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM7.300 4.500h1.400v3.200l2.300 1.600-.800 1.200-2.900-2z',
  legend: 'M2 3h4v3H2zM8 3.800h6v1.400H8zM4 7.500 6 9.500 4 11.500 2 9.500zM8 8.800h6v1.400H8zM2 13h4v1.500H2zM8 13h6v1.400H8z',
  mark: 'M3.5 1.500h9v13L8 11l-4.5 3.500z', list: 'M2 3h3v2H2zM7 3.300h7v1.400H7zM2 7h3v2H2zM7 7.300h7v1.400H7zM2 11h3v2H2zM7 11.300h7v1.400H7z',
};
const Icon = ({ d }: { d: string }) => <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path fill-rule="evenodd" d={d} /></svg>;

export function Transport({ history }: { history: History }) {
  const at = mode.value;
  const shown = playhead.value;
  const go = (direction: -1 | 1): void => void step(history, direction, true).catch((error) => console.error('the next change is not known:', error));
  const of = selection.value ? ` of ${selection.value.name}` : '';
  const marked = shown > 0 && marks.value.some((mark) => Math.abs(mark - shown) < 500);
  return (
    <div class="transport" role="group" aria-label="Time">
      {stepMessage.value && <p class="message" role="status">{stepMessage.value}</p>}
      <button class="icon" aria-label="Previous change" title={`Previous change${of} (,)`} onClick={() => go(-1)}><Icon d={ICON.back} /></button>
      <button class="icon" aria-label={at?.speed ? 'Pause' : 'Play'} title={at?.speed ? 'Pause (Space)' : 'Play (Space)'} onClick={togglePlay}><Icon d={at?.speed ? ICON.pause : ICON.play} /></button>
      <button class="icon" aria-disabled={!at} aria-label="Next change" title={`Next change${of} (.)`} onClick={() => go(1)}><Icon d={ICON.on} /></button>
      <select aria-label="Speed" title="Playback speed" value={speed.value} onChange={(e) => setSpeed(Number(e.currentTarget.value))}>
        {SPEEDS.map((s) => <option key={s} value={s}>{s}×</option>)}
      </select>
      <button class="icon" popovertarget="go-to" aria-label="Go to a moment" title="Go to a moment (G)"><Icon d={ICON.clock} /></button>
      <button class="icon" aria-pressed={marked} aria-label="Mark this moment" title={marked ? 'Remove the mark (M)' : 'Mark this moment (M)'} onClick={toggleMark}><Icon d={ICON.mark} /></button>
      <button class="icon" aria-pressed={changes.value} aria-label="Changes" title="Changes around this time (C)" onClick={toggleChanges}><Icon d={ICON.list} /></button>
      <button class="icon explain" popovertarget="legend" aria-label="Legend" title="What the strip shows"><Icon d={ICON.legend} /></button>
      <button class="zone small" aria-pressed={utc.value} aria-label={`Times are in ${zoneName(now())}. Show times in UTC`} title={utc.value ? 'Show times in the time zone of the browser' : 'Show times in UTC'} onClick={switchZone}>{zoneName(now())}</button>
      <GoTo />
      <div id="legend" class="pop" popover="auto" role="dialog" aria-label="Legend of the strip"><h2>The strip</h2><StripLegend /></div>
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
      <b>{shown ? clock(shown) : at.at}{shown > 0 && <small> {zoneName(shown)}</small>}</b>
      <span>{shown ? awayWords(shown, now(), ended.value > 0) : ''}{at.speed ? ` · playing at ${at.speed}×` : ''}</span>
    </div>
  );
}
