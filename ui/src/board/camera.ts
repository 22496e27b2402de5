// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The visible part of the board and its scale. Moves are animated unless reduced motion is requested. */

import { maxScale } from './layout';

/** The board is arranged for, and fitted to, at least so many pixels in each direction: a smaller view shows a part of it. */
export const leastView = 64;

export class Camera {
  /** CSS pixels per unit, and the board's point in the upper left corner of the view. */
  scale = 1;
  x = 0;
  y = 0;
  width = 1;
  height = 1;
  /** The scale at which the whole board fits. */
  fitScale = 1;
  #from = { scale: 1, x: 0, y: 0 };
  #to: { scale: number; x: number; y: number } | null = null;
  #began = 0;

  /** Fits a board of this size into the view, centred. Blocks are a whole number of device pixels wide. */
  fit(board: { width: number; height: number }, pitch: number, ratio: number, now: number, ease: boolean): void {
    const margin = 16;
    // Room for the controls over the lower edge.
    const foot = 64;
    const [width, height] = [Math.max(leastView, this.width - 2 * margin), Math.max(leastView, this.height - margin - foot)];
    let scale = Math.min(width / board.width, height / board.height, maxScale);
    const pixels = scale * pitch * ratio;
    if (pixels >= 3) scale = Math.floor(pixels) / pitch / ratio;
    this.fitScale = scale;
    const x = board.width / 2 - this.width / 2 / scale;
    // A board that does not fill the height is a little above the middle.
    const y = Math.min(-margin / scale, (board.height / 2 - (this.height - foot) / 2 / scale) * 0.8);
    this.go({ scale, x: Math.round(x * scale) / scale, y: Math.round(y * scale) / scale }, now, ease);
  }

  /** Zooms by a factor around a point of the view. */
  zoom(factor: number, atX: number, atY: number): void {
    const scale = Math.min(24, Math.max(this.fitScale * 0.5, this.scale * factor));
    this.x += atX / this.scale - atX / scale;
    this.y += atY / this.scale - atY / scale;
    this.scale = scale;
    this.#to = null;
  }

  pan(dx: number, dy: number): void {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.#to = null;
  }

  /** Moves as little as needed to make a point visible, at least `inset` pixels from the edges. */
  reveal(x: number, y: number, inset: number, now: number, ease: boolean): void {
    const sx = this.toScreenX(x);
    const sy = this.toScreenY(y);
    const dx = sx < inset ? sx - inset : sx > this.width - inset ? sx - this.width + inset : 0;
    const dy = sy < inset ? sy - inset : sy > this.height - inset ? sy - this.height + inset : 0;
    if (dx || dy) this.go({ scale: this.scale, x: this.x + dx / this.scale, y: this.y + dy / this.scale }, now, ease);
  }

  go(to: { scale: number; x: number; y: number }, now: number, ease: boolean): void {
    if (!ease) {
      this.scale = to.scale;
      this.x = to.x;
      this.y = to.y;
      this.#to = null;
      return;
    }
    this.#from = { scale: this.scale, x: this.x, y: this.y };
    this.#to = to;
    this.#began = now;
  }

  /** Advances a running animation. Returns whether there is one. */
  step(now: number): boolean {
    if (!this.#to) return false;
    const t = Math.min(1, (now - this.#began) / 260);
    const k = 1 - (1 - t) ** 3;
    const { scale, x, y } = this.#from;
    // Equal factors per time make the zoom look uniform.
    this.scale = scale * (this.#to.scale / scale) ** k;
    const part = this.#to.scale === scale ? k : (1 / scale - 1 / this.scale) / (1 / scale - 1 / this.#to.scale);
    this.x = x + (this.#to.x - x) * part;
    this.y = y + (this.#to.y - y) * part;
    if (t === 1) {
      Object.assign(this, this.#to);
      this.#to = null;
    }
    return true;
  }

  toScreenX(x: number): number {
    return (x - this.x) * this.scale;
  }

  toScreenY(y: number): number {
    return (y - this.y) * this.scale;
  }

  toBoardX(x: number): number {
    return x / this.scale + this.x;
  }

  toBoardY(y: number): number {
    return y / this.scale + this.y;
  }
}
