// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The renderer for GPUs: indexed quads with four vertices per block. Changed rows
 * are written to the buffers in spans. It does not use instancing, which is a
 * hundred times slower on some drivers.
 */

import type { Camera } from './camera';
import { FAR, farGap, farLook } from './far';
import { attribute, Program } from './gl-program';
import { BLOCK_FRAGMENT, BLOCK_VERTEX, FIELD_FRAGMENT, FIELD_VERTEX, RECT_FRAGMENT, RECT_VERTEX } from './gl-shaders';
import { PITCH, UNSCHEDULED, type Tile } from './positions';
import { mix, stateColours, type Colour } from './palette';
import { GLOW, type Renderer, type Scene } from './renderer';

/** Bytes per vertex: the position; the state, flags and time of change. */
const POSITION = 12;
const LOOK = 8;
/** Rows per span. */
const SPAN = 256;
/** Bytes per corner of a tile, near and far. */
const RECT = 24;
const FIELD = 32;

/** How often the fields are written, in milliseconds. */
const fieldInterval = 250;

const unit = (colour: Colour): number[] => colour.map((v) => v / 255);

export class WebGLRenderer implements Renderer {
  readonly kind = 'webgl';
  readonly #gl: WebGL2RenderingContext;
  readonly #blocks: Program;
  readonly #rects: Program;
  readonly #fields: Program;
  readonly #positionBuffer: WebGLBuffer;
  readonly #lookBuffer: WebGLBuffer;
  readonly #rectBuffer: WebGLBuffer;
  readonly #index: WebGLBuffer;
  #positions = new Float32Array(0);
  #look = new DataView(new ArrayBuffer(0));
  #rows = 0;
  #rectCount = 0;
  #ratio = 1;
  #dirty = new Set<number>();
  #replace = true;
  #repaint = true;
  #litUntil = 0;
  #wasFar = false;
  /** The fields are older than the data. */
  #stale = false;
  /** When the fields were written, and whether any of them has a line of recent changes. */
  #fieldsAt = 0;
  #recent = false;
  readonly #epoch = performance.now();

  /** Throws if there is no WebGL2, or only slow software and `slow` is false. */
  constructor(readonly canvas: HTMLCanvasElement, slow = false) {
    const gl = canvas.getContext('webgl2', { alpha: false, antialias: false, failIfMajorPerformanceCaveat: !slow, powerPreference: 'low-power' });
    if (!gl) throw new Error('no WebGL2');
    this.#gl = gl;
    this.#blocks = new Program(gl, BLOCK_VERTEX, BLOCK_FRAGMENT);
    this.#rects = new Program(gl, RECT_VERTEX, RECT_FRAGMENT);
    this.#fields = new Program(gl, FIELD_VERTEX, FIELD_FRAGMENT);
    [this.#positionBuffer, this.#lookBuffer, this.#rectBuffer, this.#index] = Array.from({ length: 4 }, () => gl.createBuffer()!);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  resize(width: number, height: number, ratio: number): void {
    this.#ratio = ratio;
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    this.#gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    this.#repaint = true;
  }

  reset(): void {
    this.#replace = true;
  }

  update(_scene: Scene, rows: Iterable<number>): void {
    for (const row of rows) this.#dirty.add(row);
    this.#stale = true;
    if (!this.#wasFar) this.#repaint = true;
  }

  updateTile(_scene: Scene, tile: Tile): void {
    for (const row of tile.slots) if (row >= 0) this.#dirty.add(row);
  }

  age(): boolean {
    if (this.#recent) this.#stale = true;
    return this.#wasFar && this.#stale;
  }

  vacate(_scene: Scene, row: number): void {
    this.#dirty.add(row);
  }

  frame(scene: Scene, camera: Camera, moved: boolean, now: number): boolean {
    const gl = this.#gl;
    const scale = camera.scale * this.#ratio;
    const far = PITCH * scale < FAR;
    if (this.#replace || scene.length > this.#rows) this.#writeAll(scene);
    else if (this.#dirty.size) this.#writeDirty(scene);
    if (this.#replace || far !== this.#wasFar || (far && this.#stale && now - this.#fieldsAt > fieldInterval)) {
      if (far) this.#writeFields(scene, now);
      else this.#writeRects(scene);
    }
    // Highlights are invisible when zoomed out. Fields that are older than the data are painted when they are due.
    const more = far ? this.#stale : now < this.#litUntil;
    if (!this.#replace && !this.#repaint && !moved && (far || !more)) return more;
    this.#replace = this.#repaint = false;
    this.#wasFar = far;

    const { theme } = scene;
    gl.clearColor(theme.board[0] / 255, theme.board[1] / 255, theme.board[2] / 255, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (far) this.#drawFields(scene, camera, scale);
    else {
      this.#drawRects(camera, scale);
      this.#drawBlocks(scene, camera, scale, now);
    }
    return more;
  }

  dispose(): void {
    this.#gl.getExtension('WEBGL_lose_context')?.loseContext();
  }

  #drawRects(camera: Camera, scale: number): void {
    const gl = this.#gl;
    this.#rects.use(camera, scale, this.canvas);
    gl.uniform1f(this.#rects.at('round_corner'), Math.min(8 * this.#ratio, 4 * scale));
    gl.uniform1f(this.#rects.at('line'), Math.max(1, Math.round(this.#ratio)));
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#rectBuffer);
    attribute(gl, 0, 4, gl.FLOAT, false, RECT, 0);
    attribute(gl, 1, 4, gl.UNSIGNED_BYTE, true, RECT, 16);
    attribute(gl, 2, 4, gl.UNSIGNED_BYTE, true, RECT, 20);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.#index);
    gl.drawElements(gl.TRIANGLES, 6 * this.#rectCount, gl.UNSIGNED_INT, 0);
  }

  #drawFields({ theme, layout }: Scene, camera: Camera, scale: number): void {
    const gl = this.#gl;
    const fields = this.#fields;
    fields.use(camera, scale, this.canvas);
    gl.uniform2f(fields.at('gap'), layout.gap, farGap(layout.gap, scale));
    gl.uniform1i(fields.at('line'), Math.max(1, Math.round(this.#ratio)));
    gl.uniform3fv(fields.at('colours'), stateColours(theme).flatMap(unit));
    for (const [name, colour] of [['ground', theme.tile], ['deleted', mix(theme.board, theme.tile, 0.4)], ['text', theme.text]] as const) gl.uniform3fv(fields.at(name), unit(colour));
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#rectBuffer);
    attribute(gl, 0, 4, gl.FLOAT, false, FIELD, 0);
    for (let at = 1; at < 4; at++) {
      gl.enableVertexAttribArray(at);
      gl.vertexAttribIPointer(at, 4, gl.UNSIGNED_BYTE, FIELD, 12 + 4 * at);
    }
    attribute(gl, 4, 4, gl.UNSIGNED_BYTE, true, FIELD, 28);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.#index);
    gl.drawElements(gl.TRIANGLES, 6 * this.#rectCount, gl.UNSIGNED_INT, 0);
    // The other programs do not use these.
    for (const at of [3, 4]) gl.disableVertexAttribArray(at);
  }

  #drawBlocks(scene: Scene, camera: Camera, scale: number, now: number): void {
    const gl = this.#gl;
    const { theme } = scene;
    this.#blocks.use(camera, scale, this.canvas);
    gl.uniform1f(this.#blocks.at('now'), (now - this.#epoch) / 1000);
    gl.uniform1f(this.#blocks.at('reduced_motion'), scene.reducedMotion ? 1 : 0);
    gl.uniform3fv(this.#blocks.at('colours'), stateColours(theme).flatMap(unit));
    gl.uniform3fv(this.#blocks.at('shade'), unit(theme.shade));
    gl.uniform3fv(this.#blocks.at('glow'), unit(theme.glow));
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#positionBuffer);
    attribute(gl, 0, 3, gl.FLOAT, false, POSITION, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#lookBuffer);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribIPointer(1, 4, gl.UNSIGNED_BYTE, LOOK, 0);
    attribute(gl, 2, 1, gl.FLOAT, false, LOOK, 4);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.#index);
    gl.drawElements(gl.TRIANGLES, 6 * scene.length, gl.UNSIGNED_INT, 0);
  }

  #writeAll(scene: Scene): void {
    const gl = this.#gl;
    const rows = Math.max(1024, 2 ** Math.ceil(Math.log2(Math.max(1, scene.length))));
    if (rows > this.#rows) {
      this.#rows = rows;
      this.#positions = new Float32Array(rows * 12);
      this.#look = new DataView(new ArrayBuffer(rows * 4 * LOOK));
      this.#writeIndex(rows);
    }
    for (let row = 0; row < scene.length; row++) this.#put(scene, row);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#positionBuffer);
    gl.bufferData(gl.ARRAY_BUFFER, this.#positions, gl.DYNAMIC_DRAW);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#lookBuffer);
    gl.bufferData(gl.ARRAY_BUFFER, this.#look, gl.DYNAMIC_DRAW);
    this.#dirty.clear();
    this.#replace = true;
  }

  /** Writes the changed spans. */
  #writeDirty(scene: Scene): void {
    const gl = this.#gl;
    const spans = new Set<number>();
    for (const row of this.#dirty) {
      this.#put(scene, row);
      spans.add(Math.floor(row / SPAN));
    }
    this.#dirty.clear();
    for (const span of spans) {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.#positionBuffer);
      gl.bufferSubData(gl.ARRAY_BUFFER, span * SPAN * 4 * POSITION, this.#positions, span * SPAN * 12, SPAN * 12);
      gl.bindBuffer(gl.ARRAY_BUFFER, this.#lookBuffer);
      gl.bufferSubData(gl.ARRAY_BUFFER, span * SPAN * 4 * LOOK, new Uint8Array(this.#look.buffer, span * SPAN * 4 * LOOK, SPAN * 4 * LOOK));
    }
  }

  #put(scene: Scene, row: number): void {
    const { layout } = scene;
    const at = (scene.changed[row] - this.#epoch) / 1000;
    if (scene.change[row]) this.#litUntil = Math.max(this.#litUntil, scene.changed[row] + 2 * GLOW);
    for (let corner = 0; corner < 4; corner++) {
      const position = (row * 4 + corner) * 3;
      this.#positions[position] = layout.x[row];
      this.#positions[position + 1] = layout.y[row];
      this.#positions[position + 2] = layout.half[row];
      const look = (row * 4 + corner) * LOOK;
      this.#look.setUint32(look, scene.look[row] | (scene.flags[row] << 8) | (scene.change[row] << 16), true);
      this.#look.setFloat32(look + 4, at, true);
    }
  }

  /** Writes the tiles. */
  #writeRects(scene: Scene): void {
    const { theme, layout } = scene;
    const data = new DataView(new ArrayBuffer(layout.tiles.length * 4 * RECT));
    layout.tiles.forEach((tile, i) => {
      const fill = tile.gone ? mix(theme.board, theme.tile, 0.4) : theme.tile;
      const bytes = [...fill, 255, ...(scene.tile(tile).edge ?? theme.edge), 255];
      writeCorners(data, i, RECT, tile, bytes);
    });
    this.#upload(scene, this.#rectBuffer, data);
  }

  /** Writes the tiles as fields. */
  #writeFields(scene: Scene, now: number): void {
    const { theme, layout } = scene;
    const data = new DataView(new ArrayBuffer(layout.tiles.length * 4 * FIELD));
    this.#recent = false;
    layout.tiles.forEach((tile, i) => {
      const look = farLook(tile, scene);
      const loose = tile.name === UNSCHEDULED;
      const bare = loose || tile.gone || !look.pods;
      const edge = scene.tile(tile).edge ?? (bare ? theme.edge : null);
      const kind = loose ? 2 : tile.gone ? 1 : 0;
      if (look.recent) this.#recent = true;
      const { parts } = look;
      const shares = loose ? [0, 0, 0, look.total, 0, 0, 0, 0] : bare ? [0, 0, 0, 0, 0, 0, 0, 0] : [...parts, look.recent];
      writeCorners(data, i, FIELD, tile, [...shares, bare ? 0 : look.state, look.fresh, kind, edge ? 1 : 0, ...(edge ?? theme.edge), 255]);
    });
    this.#upload(scene, this.#rectBuffer, data);
    this.#fieldsAt = now;
    this.#stale = false;
  }

  #upload(scene: Scene, buffer: WebGLBuffer, data: DataView): void {
    const gl = this.#gl;
    this.#rectCount = scene.layout.tiles.length;
    if (this.#rectCount > this.#rows) {
      this.#rows = 2 ** Math.ceil(Math.log2(this.#rectCount));
      this.#writeAll(scene);
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.DYNAMIC_DRAW);
    this.#repaint = true;
  }

  #writeIndex(rows: number): void {
    const gl = this.#gl;
    const index = new Uint32Array(rows * 6);
    for (let i = 0; i < rows; i++) index.set([4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 2, 4 * i + 1, 4 * i + 3], 6 * i);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.#index);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, index, gl.STATIC_DRAW);
  }
}

/** Writes a rectangle and the bytes after it for each of its four corners. */
function writeCorners(data: DataView, i: number, stride: number, { x, y, w, h }: Tile, bytes: number[]): void {
  for (let at = i * 4 * stride; at < (i + 1) * 4 * stride; at += stride) {
    data.setFloat32(at, x, true);
    data.setFloat32(at + 4, y, true);
    data.setFloat32(at + 8, w, true);
    data.setFloat32(at + 12, h, true);
    for (let n = 0; n < bytes.length; n++) data.setUint8(at + 16 + n, bytes[n]);
  }
}
