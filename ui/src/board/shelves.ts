// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Sizes and positions of workloads' tiles, which differ in size: they hang from
 * shelves, in their order, and each is as high as its Pods, and a rollout, need. Blocks
 * are as large as fit into the view.
 */

import { BLOCK, maxScale, PITCH } from './positions';

/** A tile to place: its group is the namespace. */
export interface Item {
  name: string;
  group: string;
  pods: number;
  /** It is a Deployment: its Pods are in ReplicaSets, and another one needs room during a rollout. */
  rolls: boolean;
}

export interface Placed {
  x: number;
  y: number;
  w: number;
  h: number;
  columns: number;
}

export interface Shelves {
  /** Pixels per unit. */
  scale: number;
  head: number;
  pad: number;
  gap: number;
  /** The height of the label of a ReplicaSet, and of the heading of a namespace. */
  label: number;
  heading: number;
  placed: Placed[];
  headings: { text: string; x: number; y: number; w: number }[];
  height: number;
}

/** Lines of blocks per tile that are tried. */
const LINES = [1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30, 45, 70, 100];

/**
 * How many lines the two ReplicaSets of a rollout need at most. By default a Deployment has
 * up to a quarter more Pods meanwhile; a tile that is full is laid out again.
 */
export const rolloutLines = (pods: number, columns: number): number => Math.floor((pods + Math.ceil(pods / 4) - 2) / columns) + 2;

export function shelve(items: Item[], viewWidth: number, viewHeight: number, ratio: number): Shelves {
  // The camera takes whole pixels: the board may not be wider by a rounding error.
  const [width, height] = [viewWidth - 0.5, viewHeight - 0.5];
  let best: Shelves | null = null;
  for (const tried of LINES) {
    // The largest scale that fits: blocks are whole pixels.
    let low = 1;
    let high = Math.floor(maxScale * PITCH * ratio);
    const at = (pixels: number): Shelves => pack(items, tried, pixels / PITCH / ratio, width);
    const fits = (s: Shelves): boolean => s.height * s.scale <= height;
    let found = at(low);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      const packed = at(middle);
      if (fits(packed)) {
        low = middle;
        found = packed;
      } else high = middle - 1;
    }
    // Heads and labels grow in steps, so that a few pixels more may fit again.
    for (let pixels = low + 1; pixels <= low + 4 && found.scale < maxScale; pixels++) {
      const packed = at(pixels);
      if (fits(packed)) found = packed;
    }
    // A board of smaller blocks fits if the view is zoomed out.
    if (!fits(found)) found.scale *= height / (found.height * found.scale);
    if (!best || found.scale > best.scale) best = found;
  }
  return best!;
}

function pack(items: Item[], lines: number, scale: number, viewWidth: number): Shelves {
  const pixels = scale * PITCH;
  const width = viewWidth / scale;
  const head = Math.min(24, (pixels < 5 ? 3 : Math.min(26, Math.max(17, 10 + pixels / 2))) / scale);
  // More than half of the gap between blocks, which is painted with them.
  const pad = Math.min(5, Math.max(1.25, 8 / scale));
  const gap = Math.min(6, Math.max(1.5, 10 / scale));
  const label = pixels < 14 ? 0 : 15 / scale;
  const heading = (pixels < 5 ? 12 : 20) / scale;
  const least = (pixels < 5 ? 0 : Math.min(118, Math.max(60, 5 * pixels))) / scale;
  const out: Shelves = { scale, head, pad, gap, label, heading, placed: [], headings: [], height: 0 };
  const inner = 2 * pad - (PITCH - BLOCK);
  const most = Math.max(1, Math.floor((width - inner) / PITCH));
  const sized = items.map(({ pods, rolls }) => {
    const used = rolls ? Math.max(1, Math.floor((lines - 1) / 1.25)) : lines;
    const room = rolls ? pods : pods + Math.max(1, Math.floor(pods / 10));
    const columns = Math.min(most, Math.max(2, Math.ceil(room / used), Math.ceil((least - inner) / PITCH)));
    const high = rolls ? rolloutLines(pods, columns) : Math.ceil(room / columns);
    return { columns, w: columns * PITCH + inner, h: head + high * PITCH - (PITCH - BLOCK) + pad + (rolls ? 2 * label : 0) };
  });

  let shelf: number[] = [];
  let right = 0;
  let top = 0;
  const close = (): void => {
    if (!shelf.length) return;
    const high = Math.max(...shelf.map((i) => sized[i].h));
    // The rest of a shelf that is nearly full goes to its tiles.
    const rest = right - gap > 0.6 * width ? Math.max(0, width - right + gap) / shelf.length : 0;
    let x = 0;
    let group: string | null = null;
    for (const i of shelf) {
      const { columns, w, h } = sized[i];
      out.placed[i] = { x, y: top + heading, w: w + rest, h, columns: columns + Math.floor(rest / PITCH + 1e-6) };
      const last = out.headings[out.headings.length - 1];
      if (items[i].group === group) last.w = x + w + rest - last.x;
      else out.headings.push({ text: (group = items[i].group), x, y: top, w: w + rest });
      x += w + rest + gap;
    }
    top += heading + high + gap;
    shelf = [];
    right = 0;
  };
  for (let i = 0; i < items.length; ) {
    let end = i;
    while (end < items.length && items[end].group === items[i].group) end++;
    // A namespace begins on a shelf that has room for its first two tiles.
    const first = sized.slice(i, Math.min(end, i + 2)).reduce((sum, { w }) => sum + w + gap, 0);
    if (right + first - gap > width) close();
    for (; i < end; i++) {
      if (shelf.length && right + sized[i].w > width) close();
      shelf.push(i);
      right += sized[i].w + gap;
    }
  }
  close();
  out.height = Math.max(1, top - gap);
  return out;
}
