// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The renderer without a GPU: it writes pixels into a buffer and copies only the
 * changed rectangles to the canvas. A full frame of 150,000 blocks takes a few
 * milliseconds, a thousand changed blocks less than one.
 */

import { State } from '../data/state';
import type { Camera } from './camera';
import { FAR, farGap, farLook, type FarLook } from './far';
import { Fields } from './fields';
import { BLOCK, PITCH, type Tile } from './layout';
import { mix, type Colour } from './palette';
import { glow, GLOW, type Renderer, type Scene } from './renderer';
import { LEVELS, pixel, Sprites } from './sprites';

/** Fields with more slots than this are painted at this interval, in milliseconds. */
const maxSlots = 8000;
const fieldInterval = 250;
/** How many lines of recent changes are looked at per frame. */
const AGED = 200;

/** A written square of pixels. */
interface Written {
  x: number;
  y: number;
  size: number;
}

export class CanvasRenderer implements Renderer {
  readonly kind = 'canvas';
  readonly #context: CanvasRenderingContext2D;
  #image = new ImageData(1, 1);
  #pixels = new Uint32Array(this.#image.data.buffer);
  #ratio = 1;
  #whole = true;
  /** Rows to paint, and rows with a highlight that fades. */
  #dirty = new Set<number>();
  #lit = new Set<number>();
  /** The highlight level that each row was painted with. */
  #levels = new Uint8Array(0);
  /** Slots that became empty: x and y of the centre and half the side of each. */
  #empty: number[] = [];
  #sprites = new Map<number, Sprites>();
  #fields: Fields | null = null;
  /** The tiles painted as fields, and what of each depends on the time. */
  #aged = new Map<Tile, number>();
  /** Those of them whose line of recent changes may have to be painted again. */
  #aging: Tile[] = [];
  /** When changed fields were last painted. */
  #fieldsAt = 0;
  #tilesDirty = new Set<Tile>();

  constructor(readonly canvas: HTMLCanvasElement) {
    this.#context = canvas.getContext('2d', { alpha: false, willReadFrequently: true })!;
  }

  resize(width: number, height: number, ratio: number): void {
    this.#ratio = ratio;
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    this.#image = new ImageData(this.canvas.width, this.canvas.height);
    this.#pixels = new Uint32Array(this.#image.data.buffer);
    this.#whole = true;
  }

  reset(scene: Scene): void {
    this.#whole = true;
    this.#aged.clear();
    this.#aging = [];
    this.#sprites.clear();
    this.#lit.clear();
    for (let row = 0; row < scene.length; row++) if (scene.change[row]) this.#lit.add(row);
  }

  update(scene: Scene, rows: Iterable<number>): void {
    for (const row of rows) {
      this.#dirty.add(row);
      if (scene.change[row]) this.#lit.add(row);
    }
  }

  updateTile(_scene: Scene, tile: Tile): void {
    this.#tilesDirty.add(tile);
  }

  age(): boolean {
    if (!this.#aging.length) for (const [tile, age] of this.#aged) if (age) this.#aging.push(tile);
    return this.#aging.length > 0;
  }

  vacate(scene: Scene, row: number): void {
    const { layout } = scene;
    if (layout.half[row] > 0) this.#empty.push(layout.x[row], layout.y[row], layout.half[row]);
  }

  frame(scene: Scene, camera: Camera, moved: boolean, now: number): boolean {
    const scale = camera.scale * this.#ratio;
    const far = PITCH * scale < FAR;
    if (this.#levels.length < scene.look.length) this.#levels = new Uint8Array(scene.look.length);
    for (const row of this.#lit) {
      const age = now - scene.changed[row];
      // Highlights are invisible when zoomed out, and have discrete levels when zoomed in.
      if (!far && levelOf(scene, row, age) !== this.#levels[row]) this.#dirty.add(row);
      if (age > (scene.look[row] === State.gone ? 2 * GLOW : GLOW)) this.#lit.delete(row);
    }
    if (far) {
      for (const row of this.#dirty) {
        const tile = scene.layout.tileOf(row);
        if (tile) this.#tilesDirty.add(tile);
      }
      for (const tile of this.#aging.splice(-AGED)) if (ageOf(farLook(tile, scene)) !== this.#aged.get(tile)) this.#tilesDirty.add(tile);
    } else {
      this.#aged.clear();
      this.#aging = [];
    }
    if (this.#whole || moved) {
      this.#all(scene, camera, scale, far, now);
      this.#context.putImageData(this.#image, 0, 0);
    } else if (far && now - this.#fieldsAt < fieldInterval && [...this.#tilesDirty].reduce((sum, tile) => sum + tile.slots.length, 0) > maxSlots) {
      // Large tiles wait.
      this.#dirty.clear();
      return true;
    } else if (far) {
      this.#fieldsAt = now;
      for (const tile of this.#tilesDirty) this.#repaintTile(scene, camera, scale, tile, far, now);
    } else {
      this.#some(scene, camera, scale, now); // before the tiles, in which a block may have moved to where another was
      for (const tile of this.#tilesDirty) this.#repaintTile(scene, camera, scale, tile, far, now);
    }
    this.#whole = false;
    this.#empty = [];
    this.#tilesDirty.clear();
    this.#dirty.clear();
    return far ? this.#aging.length > 0 : this.#lit.size > 0;
  }

  dispose(): void {
    this.#sprites.clear();
    this.#lit.clear();
  }

  #all(scene: Scene, camera: Camera, scale: number, far: boolean, now: number): void {
    const { theme, layout } = scene;
    this.#pixels.fill(pixel(theme.board));
    for (const tile of layout.tiles) this.#paintTile(scene, camera, scale, tile, far, now);
  }

  #paintTile(scene: Scene, camera: Camera, scale: number, tile: Tile, far: boolean, now: number): void {
    const x = (tile.x - camera.x) * scale;
    const y = (tile.y - camera.y) * scale;
    if (x > this.canvas.width || y > this.canvas.height || x + tile.w * scale < 0 || y + tile.h * scale < 0) return;
    if (far) this.#field(scene, scale, tile, x, y);
    else {
      const { theme } = scene;
      const edge = scene.tile(tile).edge ?? theme.edge;
      this.#ground(x, y, tile, scale, tile.gone ? mix(theme.board, theme.tile, 0.4) : theme.tile, edge);
      for (const row of tile.slots) if (row >= 0) this.#block(scene, camera, scale, row, now);
    }
  }

  /** Repaints a whole tile. */
  #repaintTile(scene: Scene, camera: Camera, scale: number, tile: Tile, far: boolean, now: number): void {
    this.#paintTile(scene, camera, scale, tile, far, now);
    const x = Math.floor((tile.x - camera.x) * scale);
    const y = Math.floor((tile.y - camera.y) * scale);
    this.#context.putImageData(this.#image, 0, 0, x, y, Math.ceil(tile.w * scale) + 1, Math.ceil(tile.h * scale) + 1);
  }

  /** Paints the changed rows. Their rectangles are copied one by one, or the whole image if there are many. */
  #some(scene: Scene, camera: Camera, scale: number, now: number): void {
    const one = this.#dirty.size > 3000;
    for (let i = 0; i < this.#empty.length; i += 3) {
      const at = this.#write(scene, camera, scale, this.#empty[i], this.#empty[i + 1], this.#empty[i + 2], State.none, 0, 0);
      if (at && !one) this.#context.putImageData(this.#image, 0, 0, at.x, at.y, at.size, at.size);
    }
    for (const row of this.#dirty) {
      const at = this.#block(scene, camera, scale, row, now);
      if (at && !one) this.#context.putImageData(this.#image, 0, 0, at.x, at.y, at.size, at.size);
    }
    if (one) this.#context.putImageData(this.#image, 0, 0);
  }

  /** Paints the block of a row. */
  #block(scene: Scene, camera: Camera, scale: number, row: number, now: number): Written | null {
    const { layout } = scene;
    const half = layout.half[row];
    if (!(half > 0)) return null;
    const level = levelOf(scene, row, now - scene.changed[row]);
    this.#levels[row] = level;
    return this.#write(scene, camera, scale, layout.x[row], layout.y[row], half, scene.look[row], scene.flags[row], level);
  }

  /** Copies a sprite to the position of a block. */
  #write(scene: Scene, camera: Camera, scale: number, cx: number, cy: number, half: number, look: number, flags: number, level: number): Written | null {
    const block = Math.max(1, Math.round(2 * half * scale));
    // Half of the gap to the next block, on all sides.
    const around = Math.floor((half * scale * (PITCH - BLOCK)) / BLOCK);
    const size = block + 2 * around;
    const x = Math.round((cx - half - camera.x) * scale) - around;
    const y = Math.round((cy - half - camera.y) * scale) - around;
    const { width, height } = this.canvas;
    if (x >= width || y >= height || x + size <= 0 || y + size <= 0) return null;
    this.#copy(this.#spritesFor(scene, size, block).get(look, flags, level), x, y, size);
    return { x, y, size };
  }

  /** Copies a square of pixels, clipped to the view. */
  #copy(sprite: Uint32Array, x: number, y: number, size: number): void {
    const { width, height } = this.canvas;
    const left = Math.max(0, -x);
    const right = Math.min(size, width - x);
    const pixels = this.#pixels;
    for (let line = Math.max(0, -y); line < size && y + line < height; line++) {
      let to = (y + line) * width + x + left;
      for (let from = line * size + left, end = line * size + right; from < end; from++) pixels[to++] = sprite[from];
    }
  }

  #spritesFor(scene: Scene, size: number, block: number): Sprites {
    const key = size * 1024 + block;
    let sprites = this.#sprites.get(key);
    if (!sprites || sprites.theme !== scene.theme) {
      if (this.#sprites.size > 12) this.#sprites.clear();
      this.#sprites.set(key, (sprites = new Sprites(size, block, scene.theme)));
    }
    return sprites;
  }

  /** Paints the background of a tile: fill, edge and round corners. */
  #ground(x: number, y: number, tile: Tile, scale: number, fill: Colour, edge: Colour): void {
    const left = Math.round(x);
    const top = Math.round(y);
    const right = Math.round(x + tile.w * scale) - 1;
    const bottom = Math.round(y + tile.h * scale) - 1;
    const radius = Math.min(8 * this.#ratio, 4 * scale, (right - left) / 4);
    const line = Math.max(1, Math.round(this.#ratio));
    const { width, height } = this.canvas;
    const solid = pixel(fill);
    const border = pixel(edge);
    for (let py = Math.max(0, top); py <= bottom && py < height; py++) {
      const fromEdge = Math.min(py - top, bottom - py);
      const inset = fromEdge < radius ? radius - Math.sqrt(radius * radius - (radius - fromEdge - 0.5) ** 2) : 0;
      const from = Math.round(left + inset);
      const to = Math.round(right - inset);
      const base = py * width;
      const a = base + Math.max(0, from);
      const b = base + Math.min(width - 1, to);
      if (fromEdge < line) {
        this.#pixels.fill(border, a, b + 1);
        continue;
      }
      this.#pixels.fill(solid, a, b + 1);
      const thick = Math.max(line, fromEdge < radius ? Math.ceil(inset - insetAt(radius, fromEdge + 1)) : line);
      for (let i = 0; i < thick; i++) {
        if (from + i >= 0 && from + i < width) this.#pixels[base + from + i] = border;
        if (to - i >= 0 && to - i < width) this.#pixels[base + to - i] = border;
      }
    }
  }

  /** Paints a tile as it appears zoomed out. */
  #field(scene: Scene, scale: number, tile: Tile, x: number, y: number): void {
    const { gap } = scene.layout;
    const look = farLook(tile, scene);
    this.#aged.set(tile, ageOf(look));
    if (this.#fields?.theme !== scene.theme) this.#fields = new Fields(scene.theme);
    const short = farGap(gap, scale);
    const box = { left: Math.round(x), top: Math.round(y), right: Math.round(x + (tile.w + gap) * scale) - short, bottom: Math.round(y + (tile.h + gap) * scale) - short };
    const { width, height } = this.canvas;
    this.#fields.paint({ data: this.#pixels, width, height }, box, tile, look, scene.tile(tile).edge, Math.max(1, Math.round(this.#ratio)));
  }
}

/** What of a field depends on the time. */
const ageOf = ({ recent, fresh }: FarLook): number => recent * 16 + fresh;

/** The highlight level of a row `age` milliseconds after its change; for a ghost, how far it has shrunk. */
function levelOf(scene: Scene, row: number, age: number): number {
  if (scene.reducedMotion || !scene.change[row]) return 0;
  if (scene.look[row] === State.gone) return Math.min(LEVELS, Math.floor((age / (2 * GLOW)) * LEVELS));
  return Math.ceil(glow(age) * LEVELS);
}

const insetAt = (radius: number, fromEdge: number): number =>
  fromEdge >= radius ? 0 : radius - Math.sqrt(radius * radius - (radius - fromEdge - 0.5) ** 2);
