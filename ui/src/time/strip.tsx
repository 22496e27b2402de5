// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The time strip at the lower edge. */

import 'uplot/dist/uPlot.min.css';
import { effect, untracked } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import { continuing } from '../app/address';
import { ApiError } from '../app/api';
import { lost } from '../app/contact';
import { ended, limits, now, only } from '../app/now';
import { changes, marks, mode, range, scope, theme } from '../app/state';
import { utc } from '../app/zone';
import { EventMarks } from './events';
import type { History } from './history';
import { Hint, type Pointed } from './hint';
import { advance, edge, goTo, ON_BOARD, playhead, recorded, recordedFrom, shownCounts, span, step, stripRange } from './playback';
import { parseMoment } from './moment';
import { makePlot, stacked, type PlotState } from './plot';
import { listen, reveal, setSpan, zoom } from './scrub';
import { Transport } from './transport';
import { zoned } from './words';

/** How often the counts reload, in milliseconds. */
const reloadInterval = 5000;
/** The shortest initial time range, in milliseconds. */
const minInitialSpan = 10 * 60_000;
/** The empty part of the strip after the end of a served recording, which makes the end visible. */
const endMargin = 0.02;

export function Strip({ history }: { history: History }) {
  const [about, setAbout] = useState<{ on: boolean; words: string } | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const ask = (): Promise<void> => history.state(stop.signal).then(
      ({ on, reason, first, end, only: scope = '' }) => {
        // Show the whole recording, with a margin before it.
        if (end) setSpan((end - first) * 1.05);
        // A new recording is shorter than an hour.
        else if (first) setSpan(Math.min(span.peek(), Math.max(minInitialSpan, (Date.now() - first) * 1.5)));
        ended.value = end;
        only.value = scope;
        recordedFrom.value = first;
        recorded.value = on;
        settleAge();
        setAbout({ on, words: on ? '' : end ? `No changes of Pods and Nodes: this recording has no Pods. ${limits()}` : `Nothing is recorded: ${reason || 'recording is off'}.` });
      },
      (error) => {
        const code = error instanceof ApiError ? error.code : 0;
        // After a login the strip asks again.
        if (stop.signal.aborted || code === 401) return;
        if (code === 403) setAbout({ on: false, words: `You may not read the history: ${error.message}` });
        else if (code === 404) setAbout({ on: false, words: 'This gateway has no history.' });
        else {
          setAbout({ on: false, words: `The history cannot be read: ${error.message}` });
          timer = window.setTimeout(ask, reloadInterval);
        }
      },
    );
    void ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [history]);
  // Reserve the space until it is known whether there is a history, so that the board is arranged only once.
  if (!about) return <footer class="time" />;
  if (scope.value.namespaces?.length === 0) return <footer class="time off"><p class="muted">The strip counts the changes of Pods, which you may not list.</p></footer>;
  if (!about.on) return <footer class="time off"><p class="muted">{about.words}</p></footer>;
  return (
    <footer class="time">
      <Timeline history={history} />
      <Transport history={history} />
    </footer>
  );
}

/** Turns the age in the URL, such as 10m, into a time: it counts back from the end of a recording. */
function settleAge(): void {
  const at = mode.peek();
  const moment = at && !at.time ? parseMoment(at.at, now()) : null;
  if (moment?.time) continuing(() => (mode.value = { ...moment, speed: 0 }));
}

function Timeline({ history }: { history: History }) {
  const element = useRef<HTMLDivElement>(null);
  const [pointed, point] = useState<Pointed | null>(null);
  useEffect(() => {
    const parent = element.current!;
    const state: PlotState = { theme: theme.peek(), moment: 0, marks: [], range: null, counts: null, lost: 0, events: [], eventsSince: 0 };
    const plot = makePlot(parent, state);
    const observer = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height: parent.clientHeight }));
    observer.observe(parent);
    const stop = new AbortController();
    const events = new EventMarks(history);
    let loading = false;
    const load = async (): Promise<void> => {
      if (loading || document.hidden) return;
      loading = true;
      const asked = `${span.peek()} ${edge.peek()}`;
      try {
        const { from, to } = untracked(stripRange);
        state.counts = shownCounts.value = await history.counts(from, to, stop.signal, ON_BOARD);
        draw(plot, state);
        await events.load(from, to, stop.signal, (known) => {
          Object.assign(state, { events: known, eventsSince: events.since });
          plot.redraw(false);
        });
      } catch {
        // Retried after the interval. Until then the strip keeps the last counts, and goes on.
        if (!stop.signal.aborted) rescale(plot);
      } finally {
        loading = false;
      }
      if (`${span.peek()} ${edge.peek()}` !== asked && !stop.signal.aborted) void load();
    };
    // While the strip is pressed its axis does not move, so that a drag can be aimed.
    const timer = setInterval(() => parent.matches('.dragging') || void load(), reloadInterval);
    const ending = effect(() => {
      // At once, with the bars that are known: a press before there are any goes to its moment, too.
      if (stripRange()) rescale(plot);
      void load();
    });
    // A moment outside of the strip is scrolled to, except by a drag.
    const following = effect(() => {
      if (!mode.value) edge.value = 0;
      else if (mode.value.time && !parent.matches('.dragging')) untracked(() => reveal(playhead.peek()));
    });
    let zone = utc.peek();
    const drawing = effect(() => {
      if (mode.peek()?.speed) untracked(() => reveal(playhead.peek()));
      Object.assign(state, { theme: theme.value, moment: playhead.value, marks: marks.value, range: range.value, lost: lost.value });
      // The ticks depend on the zone.
      plot.redraw(false, zone !== utc.value);
      zone = utc.value;
    });
    let at: number | null = null;
    const aim = (x: number | null): void => ((at = x), point(x === null ? null : { x, time: plot.posToVal(x, 'x') * 1000, perPixel: span.peek() / parent.clientWidth, events: state.events, eventsSince: state.eventsSince }));
    const unlisten = listen(parent, plot, aim);
    // The time under the pointer changes when the strip moves.
    plot.hooks.draw!.push(() => at !== null && aim(at));
    return () => {
      ending();
      following();
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
  const shown = playhead.value;
  return (
    <div class="strip">
      <div
        class="plot" ref={element} tabIndex={0} role="slider" aria-label="Moment" aria-orientation="horizontal" aria-busy={!shownCounts.value}
        aria-valuemin={0} aria-valuemax={span.value / 1000} aria-valuenow={Math.max(0, Math.round(((shown || now()) - stripRange().from) / 1000))}
        aria-valuetext={shown ? zoned(shown) : ended.value ? 'the end' : 'now'} onKeyDown={(event) => press(event, history)}
      />
      {pointed && <Hint pointed={pointed} />}
    </div>
  );
}

/** Keys on the strip: arrows go to the previous and next change, with Shift they change the range; Home and End go to the ends, + and − zoom. */
function press(event: KeyboardEvent, history: History): void {
  const direction = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0;
  const counts = shownCounts.value;
  if (direction && event.shiftKey) moveRangeEnd(direction);
  else if (direction) void step(history, direction).catch((error) => console.error('the next change is not known:', error));
  else if (event.key === 'Home' && counts) goTo(Date.parse(counts.from));
  else if (event.key === 'End') goTo(now());
  else if (event.key === '+' || event.key === '=') zoom(1 / 1.5, centre());
  else if (event.key === '-') zoom(1.5, centre());
  else if (event.key === 'Enter' && range.value) changes.value = true;
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/** The time about which the keys zoom: the shown moment, or the right end. */
function centre(): number {
  const { from, to } = stripRange();
  const shown = playhead.value;
  return shown > from && shown < to ? shown : to;
}

/** Shows the strip's time range before its counts are loaded. */
function rescale(plot: uPlot): void {
  const { from, to } = untracked(stripRange);
  plot.setScale('x', { min: from / 1000, max: to / 1000 });
}

/** Moves the end of the range that is away from the shown moment by a sixtieth of the strip. */
function moveRangeEnd(direction: -1 | 1): void {
  const by = (direction * span.value) / 60;
  const anchor = playhead.value || now();
  const { from, to } = range.value ?? { from: anchor, to: anchor };
  const edge = Math.abs(from - anchor) > Math.abs(to - anchor) ? from : to;
  const moved = Math.min(now(), (edge === anchor || !range.value ? anchor : edge) + by);
  range.value = moved === anchor ? null : { from: Math.min(anchor, moved), to: Math.max(anchor, moved) };
}

function draw(plot: uPlot, state: PlotState): void {
  const { counts } = state;
  if (!counts) return;
  const to = Date.parse(counts.to) / 1000;
  const room = ended.value ? (to - Date.parse(counts.from) / 1000) * endMargin : 0;
  plot.batch(() => {
    plot.setData(stacked(counts), false);
    plot.setScale('x', { min: Date.parse(counts.from) / 1000, max: to + room });
  });
}
