// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The pointers on the board: hover, click, drag, zoom with the wheel or with two fingers. */

import { follow } from '../app/pointer';
import type { Layout, Tile } from './layout';
import type { BoardView } from './view';

export interface Hit {
  tile: Tile;
  row: number;
}

export interface Intent {
  /** The pointer is over this, at this point of the view; null for the background. */
  hover(hit: Hit | null, x: number, y: number): void;
  /** A click; null for the background. */
  choose(hit: Hit | null): void;
}

interface Point {
  x: number;
  y: number;
}

/** A press that travels no further than this is a click, in pixels. A finger moves while it taps. */
const maxTravel = { mouse: 4, finger: 12 };

/** Listens until the returned function is called. */
export function listen(element: HTMLElement, view: BoardView, layout: Layout, intent: Intent): () => void {
  const { camera } = view;
  const pointers = new Map<number, Point>();
  /** Where the last pointer was pressed. */
  let start: Point = { x: 0, y: 0 };
  /** The gesture began as a click, and may still become one. */
  let click = false;
  const at = (event: MouseEvent): Point => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const hit = (p: Point): Hit | null => layout.pick(camera.toBoardX(p.x), camera.toBoardY(p.y));

  const down = (event: PointerEvent): void => {
    // Two fingers zoom, and no more count.
    if (event.button !== 0 || pointers.size === 2) return;
    start = at(event);
    pointers.set(event.pointerId, start);
    click = pointers.size === 1;
    element.setPointerCapture(event.pointerId);
  };
  const move = (event: PointerEvent): void => {
    const p = at(event);
    const from = pointers.get(event.pointerId);
    if (!from) {
      if (pointers.size === 0) intent.hover(hit(p), p.x, p.y);
      return;
    }
    const before = [...pointers.values()];
    pointers.set(event.pointerId, p);
    if (pointers.size === 2) pinch(before, [...pointers.values()]);
    else if (!click || Math.hypot(p.x - start.x, p.y - start.y) > (event.pointerType === 'mouse' ? maxTravel.mouse : maxTravel.finger)) {
      click = false;
      element.classList.add('dragging');
      intent.hover(null, 0, 0);
      camera.pan(p.x - from.x, p.y - from.y);
      view.steered();
    }
  };
  /** What was between the fingers stays there. */
  const pinch = ([a, b]: Point[], [c, d]: Point[]): void => {
    const was = Math.hypot(a.x - b.x, a.y - b.y);
    const now = Math.hypot(c.x - d.x, c.y - d.y);
    if (was < 1 || now < 1) return;
    const x = (c.x + d.x) / 2;
    const y = (c.y + d.y) / 2;
    camera.pan(x - (a.x + b.x) / 2, y - (a.y + b.y) / 2);
    camera.zoom(now / was, x, y);
    view.steered();
  };
  const up = (event: PointerEvent): void => {
    if (!pointers.delete(event.pointerId)) return;
    element.classList.remove('dragging');
    if (event.type === 'pointercancel') click = false;
  };
  // Not when the pointer is lifted: the browser would send the click of a finger to what has opened below it.
  const choose = (event: MouseEvent): void => {
    if (click) intent.choose(hit(at(event)));
    click = false;
  };
  const leave = (): void => intent.hover(null, 0, 0);
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const p = at(event);
    const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
    camera.zoom(Math.exp(-pixels * (event.ctrlKey ? 0.01 : 0.0016)), p.x, p.y);
    view.steered();
  };
  element.addEventListener('click', choose);
  const end = follow(element, { down, move, up, leave, wheel });
  return () => {
    element.removeEventListener('click', choose);
    end();
  };
}
