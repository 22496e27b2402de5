// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The pointers on the strip. */

import { batch, signal } from '@preact/signals';
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

/** A range while two fingers move: the time that was between them, at a part of the range's length, is now at another part. */
export function pinched(start: { from: number; to: number }, factor: number, was: number, is: number, now: number): { span: number; edge: number } {
  const length = Math.min(maxSpan, Math.max(minSpan, (start.to - start.from) * factor));
  const at = start.from + was * (start.to - start.from);
  return { span: length, edge: endOf(at + (1 - is) * length, length, now) };
}

/** A finger that is held this long selects a range, in milliseconds, unless it moves further than this, in pixels. */
const hold = 500;
const maxTravel = 8;

/** A range is being selected by a finger, for the hint. */
export const holding = signal(false);

/**
 * A press or drag goes to a moment, with Shift or after a long press it selects a range. The wheel zooms about the
 * pointer, or moves the strip if it is horizontal; two fingers do both. `hover` receives the pointer's position.
 */
export function listen(element: HTMLElement, plot: uPlot, hover: (x: number | null) => void): () => void {
  /** The positions of the pressed pointers: one, or two that zoom. */
  const pointers = new Map<number, { x: number; y: number }>();
  let from = 0;
  let choosing = false;
  /** A finger has been pressed, and has neither moved nor been held. */
  let waiting = false;
  let start = { x: 0, y: 0 };
  let two: { range: { from: number; to: number }; apart: number; middle: number } | null = null;
  /** The moment of the pointer, and the one that is shown. */
  let next = 0;
  let last = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let longPress: ReturnType<typeof setTimeout> | undefined;
  let moved = false;
  const position = (event: PointerEvent): number => event.clientX - plot.over.getBoundingClientRect().left;
  const timeAt = (event: PointerEvent): number => plot.posToVal(position(event), 'x') * 1000;
  const show = (): void => {
    last = next;
    // The first moment of a drag is another place, the others only correct it.
    if (moved) continuing(() => goTo(last));
    else goTo(last);
    moved = true;
  };
  // Go to a moment at once, while dragging at most every 80 ms, and to the last one when the pointer is released.
  const scrub = (time: number): void => {
    next = time;
    if (timer !== undefined) return;
    show();
    timer = setTimeout(settle, 80);
  };
  const settle = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (next !== last) scrub(next);
  };
  const begin = (): void => {
    waiting = false;
    clearTimeout(longPress);
    const chosen = range.value;
    if (chosen && (from < chosen.from || from > chosen.to)) range.value = null;
    scrub(from);
  };
  const choose = (): void => {
    waiting = false;
    choosing = holding.value = true;
    navigator.vibrate?.(20);
  };
  const spread = (): { apart: number; middle: number } => {
    const [a, b] = [...pointers.values()];
    const { left, width } = plot.over.getBoundingClientRect();
    return { apart: Math.max(1, Math.hypot(a.x - b.x, a.y - b.y)), middle: ((a.x + b.x) / 2 - left) / width };
  };
  const pinch = (): void => {
    const { apart, middle } = spread();
    const to = pinched(two!.range, two!.apart / apart, two!.middle, middle, now());
    batch(() => {
      span.value = to.span;
      edge.value = to.edge;
    });
  };
  /** Ends what one pointer does. */
  const release = (): void => {
    clearTimeout(longPress);
    from = 0;
    waiting = choosing = holding.value = false;
  };
  const down = (event: PointerEvent): void => {
    if (event.button !== 0 || pointers.size === 2) return;
    element.setPointerCapture(event.pointerId);
    element.classList.add('dragging');
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (pointers.size === 2) {
      release();
      hover(null);
      two = { range: stripRange(), ...spread() };
      return;
    }
    from = timeAt(event);
    start = { x: event.clientX, y: event.clientY };
    moved = false;
    choosing = event.shiftKey;
    if (choosing) return;
    if (event.pointerType === 'mouse') begin();
    else {
      waiting = true;
      hover(position(event));
      longPress = setTimeout(choose, hold);
    }
  };
  const move = (event: PointerEvent): void => {
    if (pointers.has(event.pointerId)) pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (two) {
      if (pointers.size === 2) pinch();
      return;
    }
    hover(position(event));
    if (!from) return;
    if (waiting && Math.hypot(event.clientX - start.x, event.clientY - start.y) > maxTravel) begin();
    const at = timeAt(event);
    if (choosing) range.value = { from: Math.min(from, at), to: Math.max(from, at) };
    else if (!waiting) scrub(at);
  };
  const up = (event: PointerEvent): void => {
    if (!pointers.delete(event.pointerId)) return;
    // The finger that remains after a zoom does nothing.
    if (pointers.size === 0) {
      two = null;
      element.classList.remove('dragging');
    }
    if (waiting && event.type === 'pointerup') begin();
    if (timer !== undefined) {
      // What is pending would undo what is pressed next.
      if (next !== last) show();
      clearTimeout(timer);
      timer = undefined;
    }
    // List the changes in the selected range.
    if (from && choosing && range.value) changes.value = true;
    release();
  };
  const leave = (): void => hover(null);
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const { left, width } = plot.over.getBoundingClientRect();
    const { from, to } = stripRange();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / width);
    else zoom(Math.exp(event.deltaY * 0.0016), from + ((event.clientX - left) / width) * (to - from));
  };
  // A long press would open the browser's menu.
  const menu = (event: Event): void => {
    if (pointers.size > 0) event.preventDefault();
  };
  element.addEventListener('contextmenu', menu);
  const end = follow(element, { down, move, up, leave, wheel });
  return () => {
    clearTimeout(timer);
    release();
    element.removeEventListener('contextmenu', menu);
    end();
  };
}
