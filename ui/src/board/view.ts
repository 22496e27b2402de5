// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The board on the page: two canvases, one for blocks and one for what is
 * written over them, and the loop that paints when there is something to
 * paint and rests when there is not.
 */

import type { Batch } from '../data/protocol';
import { Camera } from './camera';
import { CanvasRenderer } from './canvas';
import type { Engine } from './engine';
import { BLOCK, PITCH } from './layout';
import { drawOverlay, NEAR, type Marks } from './overlay';
import { FADED, type Renderer } from './renderer';
import { WebGLRenderer } from './webgl';

/** What is written is drawn anew this often when only data has changed, in milliseconds. */
const OVERLAY_PACE = 250;
/** A renderer that takes longer than this for a frame, in milliseconds, time after time, is replaced. */
const SLOW = 60;
const SLOW_FRAMES = 10;

/** What the loop takes batches from. */
export interface Source {
  take(): Batch[];
  wake: () => void;
}

/** Figures about painting, for the bench. */
export interface Figures {
  frames: number;
  /** Milliseconds in which the page was busy in frames. */
  busy: number;
  batches: number;
  /** When the first state was painted completely, in the page's milliseconds; 0 before. */
  painted: number;
  renderer: string;
}

export class BoardView {
  readonly camera = new Camera();
  readonly marks: Marks = {
    hover: -1, focus: -1, selected: -1, hoverTile: null, selectedTile: null, siblings: [], matches: null, matching: null, still: false,
    look: new Uint8Array(0), flags: new Uint8Array(0),
  };
  readonly figures: Figures = { frames: 0, busy: 0, batches: 0, painted: 0, renderer: '' };
  /** Called after a batch has been applied. */
  onData: () => void = () => {};
  #canvas: HTMLCanvasElement | null = null;
  #overlay: HTMLCanvasElement | null = null;
  #parent: HTMLElement | null = null;
  #ratio = 1;
  /** The size of the window for which all was placed. */
  #window = '';
  #asked = false;
  #moved = true;
  #marked = true;
  #dataAt = 0;
  #overlayAt = 0;
  #lastFrame = 0;
  #slow = 0;
  #forced: Renderer['kind'] | '' = '';
  #fitted = true;
  #observer: ResizeObserver | null = null;
  #ghostTimer: ReturnType<typeof setTimeout> | undefined;
  #writeTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly engine: Engine, readonly source: Source) {
    source.wake = () => this.wake();
    engine.steered = () => !this.#fitted;
    engine.onArranged = () => {
      this.fit(false);
    };
  }

  /** Shows the board in an element; by one renderer whatever its speed, if it is forced. */
  attach(parent: HTMLElement, forced: Renderer['kind'] | ''): void {
    this.#parent = parent;
    this.#overlay = document.createElement('canvas');
    this.#overlay.className = 'over';
    this.#forced = forced;
    this.#useRenderer(forced);
    parent.append(this.#overlay);
    this.#observer = new ResizeObserver(() => this.#resize());
    this.#observer.observe(parent);
    this.#resize();
  }

  detach(): void {
    this.#observer?.disconnect();
    clearTimeout(this.#writeTimer);
    clearTimeout(this.#ghostTimer);
    this.#writeTimer = this.#ghostTimer = undefined;
    this.engine.renderer?.dispose();
    this.engine.renderer = null;
    this.#canvas?.remove();
    this.#overlay?.remove();
    this.#parent = this.#canvas = this.#overlay = null;
  }

  /** Shows all of the board. */
  fit(ease: boolean): void {
    this.#fitted = true;
    this.camera.fit(this.engine.layout, PITCH, this.#ratio, performance.now(), ease && !this.engine.still);
    this.touch();
  }

  /** The camera has moved by the reader's hand. */
  steered(): void {
    this.#fitted = false;
    this.touch();
  }

  /** The camera has moved. */
  touch(): void {
    this.#moved = true;
    this.wake();
  }

  /** A mark has changed. */
  marked(): void {
    this.#marked = true;
    this.wake();
  }

  /** Asks for a frame. */
  wake(): void {
    if (this.#asked) return;
    this.#asked = true;
    requestAnimationFrame((now) => this.#frame(now));
  }

  #frame(now: number): void {
    this.#asked = false;
    const began = performance.now();
    const { engine } = this;
    for (const batch of this.source.take()) {
      engine.apply(batch, began);
      this.figures.batches++;
      this.#dataAt = now;
      this.onData();
    }
    const ghosts = engine.expire(began);
    const easing = this.camera.step(now);
    const moved = this.#moved || easing;
    let again = easing || ghosts;
    this.#moved = false;
    if (engine.renderer && this.#overlay) {
      const lit = engine.renderer.frame(engine, this.camera, moved, began);
      if (lit) again = true;
      if (!this.figures.painted && engine.cluster.synced) this.figures.painted = performance.now();
      // Cards are lit by what is written over the blocks.
      const pace = lit && BLOCK * this.camera.scale >= NEAR ? 30 : OVERLAY_PACE * (engine.layout.tiles.length > 1000 ? 4 : 1);
      const written = (lit || this.#dataAt > this.#overlayAt) && now - this.#overlayAt >= pace;
      if (moved || this.#marked || written) this.#write(now);
      else if (this.#dataAt > this.#overlayAt) this.#later(pace - (now - this.#overlayAt));
    }
    this.figures.frames++;
    this.figures.busy += performance.now() - began;
    if (again && now - this.#lastFrame < 1000) this.#judge(now - this.#lastFrame);
    this.#lastFrame = now;
    if (again) this.wake();
    else this.#sleep();
  }

  /** Asks for a frame in some milliseconds, if there is none before. */
  #later(ms: number): void {
    this.#writeTimer ??= setTimeout(() => {
      this.#writeTimer = undefined;
      this.wake();
    }, ms);
  }

  /** Nothing moves; ghosts are to be let go in time all the same. */
  #sleep(): void {
    clearTimeout(this.#ghostTimer);
    if (this.engine.cluster.ghosts) this.#ghostTimer = setTimeout(() => this.wake(), 400);
  }

  #write(now: number): void {
    const { engine, marks } = this;
    marks.matches = engine.matches;
    marks.still = engine.still;
    marks.look = engine.look;
    marks.flags = engine.flags;
    marks.matching = engine.matches ? this.#matching() : null;
    drawOverlay(this.#overlay!.getContext('2d')!, this.#ratio, engine.layout, engine.cluster, this.camera, engine.theme, marks, performance.now());
    this.#marked = false;
    this.#overlayAt = now;
  }

  #matching(): Map<string, number> {
    const { engine } = this;
    const counts = new Map<string, number>();
    for (let row = 0; row < engine.length; row++) {
      if (engine.flags[row] & FADED || engine.look[row] === 0) continue;
      const tile = engine.layout.tileOf(row);
      if (tile) counts.set(tile.name, (counts.get(tile.name) ?? 0) + 1);
    }
    return counts;
  }

  #resize(): void {
    if (!this.#parent || !this.#overlay) return;
    const { clientWidth: width, clientHeight: height } = this.#parent;
    if (!width || !height) return;
    this.#ratio = Math.min(3, devicePixelRatio || 1);
    this.engine.layout.ratio = this.#ratio;
    this.engine.renderer?.resize(width, height, this.#ratio);
    this.#overlay.width = Math.round(width * this.#ratio);
    this.#overlay.height = Math.round(height * this.#ratio);
    const changed = Math.abs(this.camera.width - width) + Math.abs(this.camera.height - height) > 0;
    this.camera.width = width;
    this.camera.height = height;
    // What stands beside the board comes and goes; only the reader's window is a reason to place all anew.
    const window = `${innerWidth} ${innerHeight}`;
    const reshaped = window !== this.#window;
    this.#window = window;
    this.engine.viewWidth = width - 32;
    this.engine.viewHeight = height - 80;
    if (this.#fitted && reshaped) this.engine.arrange();
    else if (this.#fitted && changed) this.fit(false);
    this.touch();
  }

  #useRenderer(forced: Renderer['kind'] | ''): void {
    this.engine.renderer?.dispose();
    this.#canvas?.remove();
    this.#canvas = document.createElement('canvas');
    this.#parent!.prepend(this.#canvas);
    this.engine.renderer = choose(this.#canvas, forced, () => {
      this.#canvas!.remove();
      this.#canvas = document.createElement('canvas');
      this.#parent!.prepend(this.#canvas);
      return this.#canvas;
    });
    this.figures.renderer = this.engine.renderer.kind;
    this.engine.repaint();
  }

  /** Changes to the other renderer if this one is too slow. */
  #judge(took: number): void {
    if (this.engine.renderer?.kind !== 'webgl' || this.#forced) return;
    this.#slow = took > SLOW ? this.#slow + 1 : Math.max(0, this.#slow - 1);
    if (this.#slow < SLOW_FRAMES) return;
    this.#useRenderer('canvas');
    this.#resize();
  }
}

/** The GPU if there is a real one. A canvas that has been asked for one kind of context gives no other. */
function choose(canvas: HTMLCanvasElement, forced: Renderer['kind'] | '', another: () => HTMLCanvasElement): Renderer {
  if (forced !== 'canvas') {
    try {
      const renderer = new WebGLRenderer(canvas, forced === 'webgl');
      if (forced || !/swiftshader|llvmpipe|software|basic render/i.test(renderer.name)) return renderer;
      renderer.dispose();
      canvas = another();
    } catch {
      canvas = another();
    }
  }
  return new CanvasRenderer(canvas);
}
