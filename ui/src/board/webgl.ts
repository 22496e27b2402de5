// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The renderer for GPUs: indexed quads with four vertices per block. Changed rows
 * are written to the buffers in spans. It does not use instancing, which is a
 * hundred times slower on some drivers.
 */

import type { Camera } from './camera';
import { FAR, farColour, farGap, farLook, farPlate, SIGN } from './far';
import { attribute, Program } from './gl-program';
import { BLOCK_FRAGMENT, BLOCK_VERTEX, RECT_FRAGMENT, RECT_VERTEX } from './gl-shaders';
import { PITCH, UNSCHEDULED, type Tile } from './layout';
import { mix, stateColours, type Colour } from './palette';
import { GLOW, type Renderer, type Scene } from './renderer';

/** Bytes per vertex: the position; the state, flags and time of change. */
const POSITION = 12;
const LOOK = 8;
/** Rows per span. */
const SPAN = 256;
const RECT = 24;

export class WebGLRenderer implements Renderer {
  readonly kind = 'webgl';
  readonly #gl: WebGL2RenderingContext;
  readonly #blocks: Program;
  readonly #rects: Program;
  readonly #positionBuffer: WebGLBuffer;
  readonly #lookBuffer: WebGLBuffer;
  readonly #rectBuffer: WebGLBuffer;
  readonly #index: WebGLBuffer;
  #positions = new Float32Array(0);
  #look = new DataView(new ArrayBuffer(0));
  #rows = 0;
  #rectCount = 0;
  /** The shapes on plates, drawn as blocks, at most one per tile. */
  readonly #signPositions: WebGLBuffer;
  readonly #signLooks: WebGLBuffer;
  #signCount = 0;
  #ratio = 1;
  #dirty = new Set<number>();
  #replace = true;
  #repaint = true;
  #litUntil = 0;
  #wasFar = false;
  #bandsAt = 0;
  readonly #epoch = performance.now();

  /** Throws if there is no WebGL2, or only slow software and `slow` is false. */
  constructor(readonly canvas: HTMLCanvasElement, slow = false) {
    const gl = canvas.getContext('webgl2', { alpha: false, antialias: false, failIfMajorPerformanceCaveat: !slow, powerPreference: 'low-power' });
    if (!gl) throw new Error('no WebGL2');
    this.#gl = gl;
    this.#blocks = new Program(gl, BLOCK_VERTEX, BLOCK_FRAGMENT);
    this.#rects = new Program(gl, RECT_VERTEX, RECT_FRAGMENT);
    [this.#positionBuffer, this.#lookBuffer, this.#rectBuffer, this.#index, this.#signPositions, this.#signLooks] = Array.from({ length: 6 }, () => gl.createBuffer()!);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  /** The name of the GPU. */
  get name(): string {
    const info = this.#gl.getExtension('WEBGL_debug_renderer_info');
    return String(this.#gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : this.#gl.RENDERER));
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
    this.#repaint = true;
  }

  updateTile(_scene: Scene, tile: Tile): void {
    for (const row of tile.slots) if (row >= 0) this.#dirty.add(row);
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
    if (this.#replace || far !== this.#wasFar || (far && this.#repaint && now - this.#bandsAt > 250)) this.#writeRects(scene, far, now);
    const lit = now < this.#litUntil;
    if (!this.#replace && !this.#repaint && !moved && !lit) return false;
    const waiting = far && this.#repaint && now - this.#bandsAt > 0;
    this.#replace = this.#repaint = false;
    this.#wasFar = far;

    const { theme } = scene;
    gl.clearColor(theme.board[0] / 255, theme.board[1] / 255, theme.board[2] / 255, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    this.#drawRects(camera, scale, far ? scene.layout.gap : 0);
    if (far) this.#drawBlocks(scene, camera, scale, now, this.#signPositions, this.#signLooks, this.#signCount);
    else this.#drawBlocks(scene, camera, scale, now, this.#positionBuffer, this.#lookBuffer, scene.length);
    return lit || waiting;
  }

  dispose(): void {
    this.#gl.getExtension('WEBGL_lose_context')?.loseContext();
  }

  #drawRects(camera: Camera, scale: number, gap: number): void {
    const gl = this.#gl;
    this.#rects.use(camera, scale, this.canvas);
    gl.uniform1f(this.#rects.at('round_corner'), Math.min(8 * this.#ratio, 4 * scale));
    gl.uniform2f(this.#rects.at('gap'), gap, gap && farGap(gap, scale));
    gl.uniform1f(this.#rects.at('line'), Math.max(1, Math.round(this.#ratio)));
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#rectBuffer);
    attribute(gl, 0, 4, gl.FLOAT, false, RECT, 0);
    attribute(gl, 1, 4, gl.UNSIGNED_BYTE, true, RECT, 16);
    attribute(gl, 2, 4, gl.UNSIGNED_BYTE, true, RECT, 20);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.#index);
    gl.drawElements(gl.TRIANGLES, 6 * this.#rectCount, gl.UNSIGNED_INT, 0);
  }

  #drawBlocks(scene: Scene, camera: Camera, scale: number, now: number, positions: WebGLBuffer, looks: WebGLBuffer, count: number): void {
    const gl = this.#gl;
    const { theme } = scene;
    this.#blocks.use(camera, scale, this.canvas);
    gl.uniform1f(this.#blocks.at('now'), (now - this.#epoch) / 1000);
    gl.uniform1f(this.#blocks.at('reduced_motion'), scene.reducedMotion ? 1 : 0);
    gl.uniform3fv(this.#blocks.at('colours'), stateColours(theme).flatMap((c) => c.map((v) => v / 255)));
    gl.uniform3fv(this.#blocks.at('shade'), theme.shade.map((v) => v / 255));
    gl.uniform3fv(this.#blocks.at('glow'), theme.glow.map((v) => v / 255));
    gl.bindBuffer(gl.ARRAY_BUFFER, positions);
    attribute(gl, 0, 3, gl.FLOAT, false, POSITION, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, looks);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribIPointer(1, 4, gl.UNSIGNED_BYTE, LOOK, 0);
    attribute(gl, 2, 1, gl.FLOAT, false, LOOK, 4);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.#index);
    gl.drawElements(gl.TRIANGLES, 6 * count, gl.UNSIGNED_INT, 0);
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

  #writeRects(scene: Scene, far: boolean, now: number): void {
    const { theme, layout } = scene;
    const floats: number[][] = [];
    const colours: [Colour, Colour, number][] = [];
    const signs: [number, number, number, number][] = [];
    for (const tile of layout.tiles) {
      const { edge } = scene.tile(tile);
      const look = farLook(tile, scene.look, scene.flags);
      const loose = tile.name === UNSCHEDULED;
      const fill = tile.gone ? mix(theme.board, theme.tile, 0.4) : far && !loose ? farColour(theme, look.level) : theme.tile;
      floats.push([tile.x, tile.y, tile.w, tile.h]);
      colours.push([fill, edge ?? (far && look.level && !loose ? fill : theme.edge), 255]);
      if (!far) continue;
      if (loose && look.pods) {
        floats.push([tile.x, tile.y, Math.max(tile.h, (tile.w * look.pods) / tile.slots.length), tile.h]);
        colours.push([theme.state.pending, theme.state.pending, 255]);
      }
      const plate = farPlate(tile, look);
      if (!plate) continue;
      floats.push([plate.x - plate.half, plate.y - plate.half, 2 * plate.half, 2 * plate.half]);
      colours.push([theme.tile, theme.tile, 0]);
      signs.push([plate.x, plate.y, plate.half * SIGN, look.state]);
    }
    this.#writeSigns(signs);
    const data = new DataView(new ArrayBuffer(floats.length * 4 * RECT));
    floats.forEach((rect, i) => {
      for (let corner = 0; corner < 4; corner++) {
        const at = (i * 4 + corner) * RECT;
        rect.forEach((value, n) => data.setFloat32(at + 4 * n, value, true));
        const [fill, edge, spaced] = colours[i];
        [...fill, 255, ...edge, spaced].forEach((value, n) => data.setUint8(at + 16 + n, value));
      }
    });
    if (floats.length > this.#rows) {
      this.#rows = 2 ** Math.ceil(Math.log2(floats.length));
      this.#writeAll(scene);
    }
    this.#gl.bindBuffer(this.#gl.ARRAY_BUFFER, this.#rectBuffer);
    this.#gl.bufferData(this.#gl.ARRAY_BUFFER, data, this.#gl.DYNAMIC_DRAW);
    this.#rectCount = floats.length;
    this.#bandsAt = now;
    this.#repaint = true;
  }

  #writeSigns(signs: [number, number, number, number][]): void {
    const gl = this.#gl;
    const positions = new Float32Array(signs.length * 12);
    const looks = new Uint32Array((signs.length * 4 * LOOK) / 4);
    signs.forEach(([x, y, half, state], i) => {
      for (let corner = 4 * i; corner < 4 * i + 4; corner++) {
        positions.set([x, y, half], 3 * corner);
        looks[(corner * LOOK) / 4] = state;
      }
    });
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#signPositions);
    gl.bufferData(gl.ARRAY_BUFFER, positions, gl.DYNAMIC_DRAW);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#signLooks);
    gl.bufferData(gl.ARRAY_BUFFER, looks, gl.DYNAMIC_DRAW);
    this.#signCount = signs.length;
  }

  #writeIndex(rows: number): void {
    const gl = this.#gl;
    const index = new Uint32Array(rows * 6);
    for (let i = 0; i < rows; i++) index.set([4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 2, 4 * i + 1, 4 * i + 3], 6 * i);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.#index);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, index, gl.STATIC_DRAW);
  }
}
