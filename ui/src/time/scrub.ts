// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The pointer on the strip. */

import { batch } from '@preact/signals';
import type uPlot from 'uplot';
import { continuing } from '../app/address';
import { now } from '../app/now';
import { follow } from '../app/pointer';
import { changes, range } from '../app/state';
import { edge, goTo, span, stripRange } from './playback';

const minSpan = 60_000;
const maxSpan = 14 * 24 * 3600_000;

/** Sets the length of the strip's time range, within its limits. */
export const setSpan = (to: number): void => {
  span.value = Math.min(maxSpan, Math.max(minSpan, to));
};

/** The right end of a range, or 0 for now if it reaches now, or almost. */
const endOf = (to: number, length: number, now: number): number => (to > now - length / 50 ? 0 : to);

/** A range after a zoom by a factor about a time, which keeps its place. */
export function zoomed({ from, to }: { from: number; to: number }, factor: number, at: number, now: number): { span: number; edge: number } {
  const length = Math.min(maxSpan, Math.max(minSpan, (to - from) * factor));
  return { span: length, edge: endOf(at + ((to - at) / (to - from)) * length, length, now) };
}

/** Zooms the strip about a time. */
export function zoom(factor: number, at: number): void {
  const next = zoomed(stripRange(), factor, at, now());
  batch(() => {
    span.value = next.span;
    edge.value = next.edge;
  });
}

/** Moves the strip's range by a part of its length, towards now if that is positive. */
export function pan(part: number): void {
  edge.value = endOf(stripRange().to + part * span.value, span.value, now());
}

/** Moves the strip's range so that a moment outside is in its middle. */
export function reveal(moment: number): void {
  const { from, to } = stripRange();
  if (moment < from || moment > to) edge.value = endOf(moment + span.value / 2, span.value, now());
}

/** A press or drag goes to a moment, with Shift it selects a range, and the wheel zooms about the pointer, or moves the strip if it is horizontal. `hover` receives the pointer's position. */
export function listen(element: HTMLElement, plot: uPlot, hover: (x: number | null) => void): () => void {
  let from = 0;
  let choosing = false;
  let next = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let moved = false;
  const position = (event: PointerEvent): number => event.clientX - plot.over.getBoundingClientRect().left;
  const timeAt = (event: PointerEvent): number => plot.posToVal(position(event), 'x') * 1000;
  // While dragging, go to a moment at most every 80 ms, and always to the last one.
  const scrub = (time: number): void => {
    next = time;
    timer ??= setTimeout(() => {
      timer = undefined;
      // The first moment of a drag is another place, the others only correct it.
      if (moved) continuing(() => goTo(next));
      else goTo(next);
      moved = true;
    }, 80);
  };
  const down = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    from = timeAt(event);
    moved = false;
    choosing = event.shiftKey;
    if (choosing) return;
    const chosen = range.value;
    if (chosen && (from < chosen.from || from > chosen.to)) range.value = null;
    scrub(from);
  };
  const move = (event: PointerEvent): void => {
    hover(position(event));
    if (!from) return;
    const at = timeAt(event);
    if (choosing) range.value = { from: Math.min(from, at), to: Math.max(from, at) };
    else scrub(at);
  };
  const up = (): void => {
    // List the changes in the selected range.
    if (from && choosing && range.value) changes.value = true;
    from = 0;
  };
  const leave = (): void => hover(null);
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const { left, width } = plot.over.getBoundingClientRect();
    const { from, to } = stripRange();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / width);
    else zoom(Math.exp(event.deltaY * 0.0016), from + ((event.clientX - left) / width) * (to - from));
  };
  const end = follow(element, { down, move, up, leave, wheel });
  return () => {
    clearTimeout(timer);
    end();
  };
}
