// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Paints the fields of far.ts into pixels, for the renderer without a GPU. */

import { State } from '../data/state';
import { bandHeights, BANDS, CALM, FRESH, lineAlpha, patterned, share, SIGN, signOf, stripHeight, type FarLook } from './far';
import { UNSCHEDULED, type Tile } from './positions';
import { mix, stateColours, type Colour, type Theme } from './palette';
import { coverage, distance } from './shapes';
import { pixel } from './sprites';

/** An image, row by row. */
export interface Pixels {
  data: Uint32Array;
  width: number;
  height: number;
}

/** The pixels of a field: right and bottom are outside. */
export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export class Fields {
  readonly #bands: number[];
  readonly #lines: number[];
  readonly #colours: Colour[];
  readonly #tile: number;
  readonly #signs = new Map<number, Uint32Array>();

  constructor(readonly theme: Theme) {
    this.#colours = stateColours(theme);
    this.#tile = pixel(theme.tile);
    this.#bands = BANDS.map((state) => pixel(state === State.ready ? mix(theme.tile, this.#colours[state], CALM) : this.#colours[state]));
    this.#lines = Array.from({ length: FRESH + 1 }, (_, fresh) => pixel(mix(theme.tile, theme.text, lineAlpha(fresh))));
  }

  /** Paints a tile's field. `edge` is the colour of its edge, `line` the width of that. */
  paint(to: Pixels, box: Box, tile: Tile, look: FarLook, edge: Colour | null, line: number): void {
    const { theme } = this;
    const width = box.right - box.left;
    const height = box.bottom - box.top;
    const bare = tile.gone || !look.pods;
    fill(to, box, 0, 0, width, height, tile.gone ? pixel(mix(theme.board, theme.tile, 0.4)) : this.#tile);
    if (tile.name === UNSCHEDULED) {
      this.#border(to, box, pixel(theme.edge), line);
      if (look.pods) fill(to, box, 0, 0, Math.min(width, Math.max(height, share(look.total, width))), height, this.#bands[BANDS.indexOf(State.pending)]);
      return;
    }
    if (!bare) this.#stack(to, box, look, width, height);
    if (edge || bare) this.#border(to, box, pixel(edge ?? theme.edge), line);
  }

  #stack(to: Pixels, box: Box, look: FarLook, width: number, height: number): void {
    const strip = stripHeight(height);
    const { above, bands } = bandHeights(look.parts, height - strip);
    const place = signOf(width, height - strip);
    const from = look.state === State.none ? 0 : place.size;
    let y = above;
    for (let band = 0; band < bands.length; band++) {
      const end = Math.min(height - strip, y + bands[band]);
      if (patternless(band)) fill(to, box, from, y, width, end, this.#bands[band]);
      else for (; y < end; y++) for (let x = from; x < width; x++) if (patterned(band, x, y)) dot(to, box.left + x, box.top + y, this.#bands[band]);
      y = end;
    }
    if (look.recent && strip) fill(to, box, 0, height - strip + 1, Math.max(1, share(look.recent, width)), height, this.#lines[look.fresh]);
    if (!from) return;
    const sign = this.#sign(look.state, place.size);
    for (let py = 0; py < place.size; py++) {
      for (let px = 0; px < place.size; px++) dot(to, box.left + px, box.top + place.y + py, sign[py * place.size + px]);
    }
  }

  #border(to: Pixels, box: Box, colour: number, line: number): void {
    const width = box.right - box.left;
    const height = box.bottom - box.top;
    fill(to, box, 0, 0, width, line, colour);
    fill(to, box, 0, height - line, width, height, colour);
    fill(to, box, 0, 0, line, height, colour);
    fill(to, box, width - line, 0, width, height, colour);
  }

  /** The pixels of the shape of a state. */
  #sign(state: number, size: number): Uint32Array {
    const key = size * 16 + state;
    let sign = this.#signs.get(key);
    if (sign) return sign;
    sign = new Uint32Array(size * size);
    const side = size * SIGN;
    for (let py = 0; py < size; py++) {
      for (let px = 0; px < size; px++) {
        const x = (2 * (px + 0.5 - size / 2)) / side;
        const y = (2 * (py + 0.5 - size / 2)) / side;
        sign[py * size + px] = pixel(mix(this.theme.tile, this.#colours[state], coverage(distance(state, x, y, side), side)));
      }
    }
    this.#signs.set(key, sign);
    return sign;
  }
}

/** Whether all pixels of a band have its colour. */
const patternless = (band: number): boolean => patterned(band, 0, 0) && patterned(band, 1, 0) && patterned(band, 2, 0);

function dot(to: Pixels, x: number, y: number, colour: number): void {
  if (x >= 0 && y >= 0 && x < to.width && y < to.height) to.data[y * to.width + x] = colour;
}

/** Fills a rectangle of a field, clipped to the image. */
function fill(to: Pixels, box: Box, fromX: number, fromY: number, toX: number, toY: number, colour: number): void {
  const left = Math.max(0, box.left + fromX);
  const right = Math.min(to.width, box.left + toX);
  if (left >= right) return;
  for (let y = Math.max(0, box.top + fromY); y < Math.min(to.height, box.top + toY); y++) to.data.fill(colour, y * to.width + left, y * to.width + right);
}
