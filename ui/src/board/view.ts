// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * The board on the page: a canvas for blocks, a canvas for the overlay, and the
 * loop that requests frames only while there is something to paint.
 */

import type { Batch } from '../data/protocol';
import { Camera, leastView } from './camera';
import { CanvasRenderer } from './canvas';
import type { Engine } from './engine';
import { follow } from './follow';
import { BLOCK, PITCH } from './layout';
import { drawOverlay, NEAR, type Marks } from './overlay';
import type { Renderer } from './renderer';

/** How often the overlay is drawn when only data changes, in milliseconds. */
const overlayInterval = 250;
/** WebGL is replaced after this many frames that took longer than this, in milliseconds. */
const maxFrameTime = 60;
const maxSlowFrames = 10;

/** The source of batches. */
export interface Source {
  take(): Batch[];
  wake: () => void;
}

/** Measurements for benchmarks. */
export interface Figures {
  frames: number;
  /** Milliseconds spent in frames. */
  busy: number;
  batches: number;
  /** When the first complete list was painted, as of performance.now(); 0 before. */
  painted: number;
  renderer: string;
}

export class BoardView {
  readonly camera = new Camera();
  readonly marks: Marks = {
    hover: -1, focus: -1, selected: -1, hoverTile: null, selectedTile: null, siblings: [], matches: null, matching: null, reducedMotion: false,
    look: new Uint8Array(0), flags: new Uint8Array(0),
  };
  readonly figures: Figures = { frames: 0, busy: 0, batches: 0, painted: 0, renderer: '' };
  /** Called after a batch has been applied. */
  onData: () => void = () => {};
  #canvas: HTMLCanvasElement | null = null;
  #overlay: HTMLCanvasElement | null = null;
  #parent: HTMLElement | null = null;
  #ratio = 1;
  /** The size of the window for which the board was arranged. */
  #window = '';
  #requested = false;
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
    engine.onSettled = () => this.marked();
  }

  /** Shows the board in an element. `forced` selects a renderer regardless of its speed. */
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

  /** Fits the whole board into the view. */
  fit(ease: boolean): void {
    this.#fitted = true;
    this.camera.fit(this.engine.layout, PITCH, this.#ratio, performance.now(), ease && !this.engine.reducedMotion);
    this.touch();
  }

  /** The user has moved the camera. */
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

  /** The clock has moved. */
  reassess(): void {
    if (this.engine.reassess(performance.now())) this.marked();
  }

  /** Requests a frame. */
  wake(): void {
    if (this.#requested) return;
    this.#requested = true;
    requestAnimationFrame((now) => this.#frame(now));
  }

  #frame(now: number): void {
    this.#requested = false;
    const began = performance.now();
    const { engine } = this;
    let failed: unknown;
    for (const batch of this.source.take()) {
      try {
        engine.apply(batch, began);
      } catch (error) {
        // The cluster has the batch, and its lists are right, also if the board cannot be drawn.
        failed ??= error;
      }
      this.figures.batches++;
      this.#dataAt = now;
      this.onData();
    }
    const ghosts = engine.expire(began);
    const focus = follow(this.marks.focus, engine.cluster, engine.layout);
    if (focus !== this.marks.focus) this.#marked = true;
    this.marks.focus = focus;
    const easing = this.camera.step(now);
    const moved = this.#moved || easing;
    let again = easing || ghosts;
    this.#moved = false;
    if (engine.renderer && this.#overlay) {
      const lit = engine.renderer.frame(engine, this.camera, moved, began);
      if (lit) again = true;
      if (!this.figures.painted && engine.cluster.synced) this.figures.painted = performance.now();
      // The overlay draws the highlight of cards.
      const pace = lit && BLOCK * this.camera.scale >= NEAR ? 30 : overlayInterval * (engine.layout.tiles.length > 1000 ? 4 : 1);
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
    if (failed) throw failed;
  }

  /** Requests a frame after some milliseconds. */
  #later(ms: number): void {
    this.#writeTimer ??= setTimeout(() => {
      this.#writeTimer = undefined;
      this.wake();
    }, ms);
  }

  /** No animation is running: wake up only to remove ghosts. */
  #sleep(): void {
    clearTimeout(this.#ghostTimer);
    if (this.engine.cluster.ghosts) this.#ghostTimer = setTimeout(() => this.wake(), 400);
  }

  #write(now: number): void {
    const { engine, marks } = this;
    marks.matches = engine.matches;
    marks.reducedMotion = engine.reducedMotion;
    marks.look = engine.look;
    marks.flags = engine.flags;
    marks.matching = engine.matches ? engine.matchingByTile() : null;
    drawOverlay(this.#overlay!.getContext('2d')!, this.#ratio, engine.layout, engine.cluster, this.camera, engine.theme, marks, performance.now());
    this.#marked = false;
    this.#overlayAt = now;
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
    // Side panels open and close: arrange the board again only if the window changes its size.
    const window = `${innerWidth} ${innerHeight}`;
    const reshaped = window !== this.#window;
    this.#window = window;
    this.engine.viewWidth = Math.max(leastView, width - 32);
    this.engine.viewHeight = Math.max(leastView, height - 80);
    if (this.#fitted && reshaped) this.engine.arrange();
    else if (this.#fitted && changed) this.fit(false);
    this.touch();
  }

  /** Paints with the CPU, and with the GPU as soon as the code for it is loaded. */
  #useRenderer(forced: Renderer['kind'] | ''): void {
    const first = this.#show((canvas) => new CanvasRenderer(canvas));
    if (forced === 'canvas' || (!forced && !hasGPU())) return;
    import('./webgl').then(
      ({ WebGLRenderer }) => {
        // Meanwhile the board may have been closed.
        if (this.engine.renderer !== first) return;
        this.#show((canvas) => new WebGLRenderer(canvas, forced === 'webgl'));
        this.#resize();
      },
    ).catch((error: Error) => console.info(`the board is painted without WebGL: ${error.message}`));
  }

  /** Replaces the canvas and its renderer. A canvas supports only one kind of context. */
  #show(make: (canvas: HTMLCanvasElement) => Renderer): Renderer {
    const canvas = document.createElement('canvas');
    const renderer = make(canvas);
    this.engine.renderer?.dispose();
    this.#canvas?.remove();
    this.#canvas = canvas;
    this.#parent!.prepend(canvas);
    this.engine.renderer = renderer;
    this.figures.renderer = renderer.kind;
    this.engine.repaint();
    return renderer;
  }

  /** Switches from WebGL to the CPU if WebGL is too slow. */
  #judge(took: number): void {
    if (this.engine.renderer?.kind !== 'webgl' || this.#forced) return;
    this.#slow = took > maxFrameTime ? this.#slow + 1 : Math.max(0, this.#slow - 1);
    if (this.#slow < maxSlowFrames) return;
    this.#useRenderer('canvas');
    this.#resize();
  }
}

/** Whether WebGL has a real GPU: software would take seconds per frame instead of milliseconds. */
function hasGPU(): boolean {
  const gl = document.createElement('canvas').getContext('webgl2', { failIfMajorPerformanceCaveat: true, powerPreference: 'low-power' });
  const info = gl?.getExtension('WEBGL_debug_renderer_info');
  const name = gl ? String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER)) : 'none';
  gl?.getExtension('WEBGL_lose_context')?.loseContext();
  return !/none|swiftshader|llvmpipe|software|basic render/i.test(name);
}
