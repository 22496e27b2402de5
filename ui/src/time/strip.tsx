// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The strip at the lower edge: what happened when, and the way back to it. */

import 'uplot/dist/uPlot.min.css';
import { effect, signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import { ended, now } from '../app/now';
import { mode, theme } from '../app/state';
import { age } from '../data/quantity';
import type { Counts, History } from './history';
import { advance, goTo, marks, nextChange, playhead, range, setSpeed, speed, SPEEDS, toggleMark, togglePlay, toLive } from './playback';
import { makePlot, stacked, type PlotState } from './plot';
import { clock } from './words';

/** How much time the strip shows, in milliseconds; the reader's wheel changes it. */
const span = signal(3600_000);
const SHORTEST = 60_000;
const LONGEST = 14 * 24 * 3600_000;
/** How often the counts are asked for anew while all is live, in milliseconds. */
const PACE = 5000;

export function Strip({ history }: { history: History }) {
  const [about, setAbout] = useState<{ on: boolean; words: string } | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    history.state(stop.signal).then(
      ({ on, reason, first, end }) => {
        // All of a recording is in sight, with a little room before it.
        if (end) span.value = Math.max(SHORTEST, (end - first) * 1.05);
        ended.value = end;
        setAbout({ on, words: on ? '' : `Nothing is recorded: ${reason || 'recording is off'}.` });
      },
      () => stop.signal.aborted || setAbout({ on: false, words: 'Nothing is recorded here, so there is no going back.' }),
    );
    return () => stop.abort();
  }, [history]);
  // Its place is kept until it is known whether there is anything to show: the board is not to be placed twice.
  if (!about) return <footer class="time" />;
  if (!about.on) return <footer class="time off"><p class="muted">{about.words}</p></footer>;
  return (
    <footer class="time">
      <Timeline history={history} />
      <Transport />
    </footer>
  );
}

function Timeline({ history }: { history: History }) {
  const element = useRef<HTMLDivElement>(null);
  const latest = useRef<Counts | null>(null);
  useEffect(() => {
    const parent = element.current!;
    const state: PlotState = { theme: theme.peek(), moment: 0, marks: [], range: null, counts: null };
    const plot = makePlot(parent, state);
    const observer = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height: parent.clientHeight }));
    observer.observe(parent);
    const stop = new AbortController();
    let asking = false;
    const load = async (): Promise<void> => {
      if (asking || document.hidden) return;
      asking = true;
      try {
        const to = now();
        state.counts = latest.current = await history.counts(to - span.peek(), to, stop.signal);
        draw(plot, state);
      } catch {
        // It is asked again; until then the strip shows what it knew.
      } finally {
        asking = false;
      }
    };
    const timer = setInterval(() => void load(), PACE);
    const ending = effect(() => {
      void span.value;
      void load();
    });
    const drawing = effect(() => {
      Object.assign(state, { theme: theme.value, moment: playhead.value, marks: marks.value, range: range.value });
      plot.redraw(false);
    });
    const unlisten = listen(parent, plot);
    return () => {
      ending();
      drawing();
      unlisten();
      clearInterval(timer);
      stop.abort();
      observer.disconnect();
      plot.destroy();
    };
  }, [history]);
  useEffect(() => {
    const timer = setInterval(advance, 100);
    return () => clearInterval(timer);
  }, []);

  const keys = (event: KeyboardEvent): void => {
    const way = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0;
    if (way && latest.current) {
      const from = playhead.value || now();
      nextChange(history, latest.current, from, way, new AbortController().signal).then((at) => (at ? goTo(at) : way > 0 && toLive()), () => {});
    } else if (event.key === 'm') toggleMark();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = playhead.value;
  return (
    <div
      class="plot" ref={element} tabIndex={0} role="slider" aria-label="Moment" aria-orientation="horizontal"
      aria-valuemin={0} aria-valuemax={span.value / 1000} aria-valuenow={Math.max(0, Math.round((span.value - (now() - (shown || now()))) / 1000))}
      aria-valuetext={shown ? clock(shown) : ended.value ? 'the end' : 'now'} onKeyDown={keys}
    />
  );
}

function draw(plot: uPlot, state: PlotState): void {
  const { counts } = state;
  if (!counts) return;
  plot.batch(() => {
    plot.setData(stacked(counts), false);
    plot.setScale('x', { min: Date.parse(counts.from) / 1000, max: Date.parse(counts.to) / 1000 });
  });
}

/** Press and drag goes to a moment; with Shift it chooses a range; the wheel shows more or less time. */
function listen(element: HTMLElement, plot: uPlot): () => void {
  let from = 0;
  let choosing = false;
  let next = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeAt = (event: PointerEvent): number => plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, 'x') * 1000;
  // A moment is asked for at most so often while the hand moves; the last is never left out.
  const scrub = (time: number): void => {
    next = time;
    timer ??= setTimeout(() => {
      timer = undefined;
      goTo(next);
    }, 80);
  };
  const down = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    from = timeAt(event);
    choosing = event.shiftKey;
    if (!choosing) {
      range.value = null;
      scrub(from);
    }
  };
  const move = (event: PointerEvent): void => {
    if (!from) return;
    const at = timeAt(event);
    if (choosing) range.value = { from: Math.min(from, at), to: Math.max(from, at) };
    else scrub(at);
  };
  const up = (): void => {
    from = 0;
  };
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    span.value = Math.min(LONGEST, Math.max(SHORTEST, span.value * Math.exp(event.deltaY * 0.0016)));
  };
  element.addEventListener('pointerdown', down);
  element.addEventListener('pointermove', move);
  element.addEventListener('pointerup', up);
  element.addEventListener('pointercancel', up);
  element.addEventListener('wheel', wheel, { passive: false });
  return () => {
    clearTimeout(timer);
    element.removeEventListener('pointerdown', down);
    element.removeEventListener('pointermove', move);
    element.removeEventListener('pointerup', up);
    element.removeEventListener('pointercancel', up);
    element.removeEventListener('wheel', wheel);
  };
}

function Transport() {
  const at = mode.value;
  return (
    <div class="transport">
      <button class="icon" disabled={!at} aria-label={at?.speed ? 'Pause' : 'Play'} title="Play (Space)" onClick={togglePlay}>
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path d={at?.speed ? 'M4 2.5h3v11H4zM9 2.5h3v11H9z' : 'M4 2.2v11.6L13.5 8z'} /></svg>
      </button>
      <select aria-label="Speed" value={speed.value} onChange={(e) => setSpeed(Number(e.currentTarget.value))}>
        {SPEEDS.map((s) => <option key={s} value={s}>{s}×</option>)}
      </select>
      <button class={`now ${at ? '' : 'on'}`} onClick={toLive} title={ended.value ? 'To the end (Esc)' : 'Back to now (Esc)'}>{at ? 'to ' : ''}{ended.value ? 'the end' : 'now'}</button>
    </div>
  );
}

/** The moment, large, over the board: nobody is to mistake the past for now. */
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
