// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The pointer on the board: hover, click, drag, zoom. */

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

/** Listens until the returned function is called. */
export function listen(element: HTMLElement, view: BoardView, layout: Layout, intent: Intent): () => void {
  const { camera } = view;
  const pointers = new Map<number, { x: number; y: number }>();
  let travelled = 0;
  let spread = 0;
  const at = (event: PointerEvent | WheelEvent): { x: number; y: number } => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const hit = (p: { x: number; y: number }): Hit | null => layout.pick(camera.toBoardX(p.x), camera.toBoardY(p.y));

  const down = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, at(event));
    travelled = spread = 0;
    element.setPointerCapture(event.pointerId);
  };
  const move = (event: PointerEvent): void => {
    const p = at(event);
    const from = pointers.get(event.pointerId);
    if (!from) {
      intent.hover(hit(p), p.x, p.y);
      return;
    }
    travelled += Math.abs(p.x - from.x) + Math.abs(p.y - from.y);
    pointers.set(event.pointerId, p);
    if (pointers.size === 2) pinch();
    else if (travelled > 4) {
      element.classList.add('dragging');
      intent.hover(null, 0, 0);
      camera.pan(p.x - from.x, p.y - from.y);
      view.steered();
    }
  };
  const pinch = (): void => {
    const [a, b] = [...pointers.values()];
    const now = Math.hypot(a.x - b.x, a.y - b.y);
    if (spread > 0) {
      camera.zoom(now / spread, (a.x + b.x) / 2, (a.y + b.y) / 2);
      view.steered();
    }
    spread = now;
  };
  const up = (event: PointerEvent): void => {
    if (!pointers.delete(event.pointerId)) return;
    element.classList.remove('dragging');
    if (travelled <= 4 && event.type === 'pointerup') intent.choose(hit(at(event)));
  };
  const leave = (): void => intent.hover(null, 0, 0);
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const p = at(event);
    const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
    camera.zoom(Math.exp(-pixels * (event.ctrlKey ? 0.01 : 0.0016)), p.x, p.y);
    view.steered();
  };
  return follow(element, { down, move, up, leave, wheel });
}
