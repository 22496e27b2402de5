// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// decode(PNG): the pixels of a screenshot. Chromium writes 8 bits per channel, RGB
// or RGBA, not interlaced.

import assert from 'node:assert/strict';
import { inflateSync } from 'node:zlib';

/** Decodes a PNG to {width, height, data}, where data has red, green, blue and alpha of each pixel. */
export function decode(png) {
  assert.equal(png.toString('latin1', 1, 4), 'PNG');
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const [depth, type, , , interlaced] = png.subarray(24, 29);
  assert.ok(depth === 8 && (type === 2 || type === 6) && interlaced === 0, `depth ${depth}, colour type ${type}, interlaced ${interlaced}`);
  const parts = [];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  const channels = type === 6 ? 4 : 3;
  const rows = unfilter(inflateSync(Buffer.concat(parts)), width * channels, height, channels);
  if (channels === 4) return { width, height, data: rows };
  const data = Buffer.alloc(4 * width * height, 255);
  for (let from = 0, to = 0; from < rows.length; from += 3, to += 4) {
    data[to] = rows[from];
    data[to + 1] = rows[from + 1];
    data[to + 2] = rows[from + 2];
  }
  return { width, height, data };
}

/** Undoes the filters: each row starts with the type of its filter, and predicts a byte from its neighbours. */
function unfilter(bytes, stride, height, channels) {
  const out = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = bytes[y * (stride + 1)];
    const from = y * (stride + 1) + 1;
    const row = y * stride;
    for (let x = 0; x < stride; x++) {
      const left = x < channels ? 0 : out[row + x - channels];
      const up = y === 0 ? 0 : out[row + x - stride];
      const corner = x < channels || y === 0 ? 0 : out[row + x - stride - channels];
      const predicted = filter === 0 ? 0 : filter === 1 ? left : filter === 2 ? up : filter === 3 ? (left + up) >> 1 : paeth(left, up, corner);
      out[row + x] = bytes[from + x] + predicted;
    }
  }
  return out;
}

/** The neighbour that is closest to left + up - corner. */
function paeth(left, up, corner) {
  const a = Math.abs(up - corner);
  const b = Math.abs(left - corner);
  const c = Math.abs(left + up - 2 * corner);
  return a <= b && a <= c ? left : b <= c ? up : corner;
}
