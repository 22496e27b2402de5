// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The shaders of the WebGL2 backend. The distances are those of shapes.ts. */

import { State } from '../data/state';
import { BANDS, CALM, FRESH, PRESSING, SIGN } from './far';

/** The distance from the shape of a state. */
const SHAPE = `
float box(vec2 q, float side, float radius) {
  vec2 d = abs(q) - side + radius;
  return min(max(d.x, d.y), 0.0) + length(max(d, 0.0)) - radius;
}
float outside(uint s, vec2 q, float size, float line) {
  if (size < 5.0) s = s == 3u || s == 8u ? 5u : 1u;
  if (s == 1u) return box(q, 1.0, 0.34);
  if (s == 2u) { float e = box(q, 1.0, 0.34); return min(max(e, -e - line), max(e, (q.x - q.y) * 0.70711)); }
  if (s == 3u) return abs(length(q) - 0.92 + line / 2.0) - line / 2.0;
  if (s == 4u) return max((abs(q.x) * 2.0 - q.y - 0.86) / 2.236, q.y - 0.8) - 0.08;
  if (s == 5u) return length(q) - 0.8;
  if (s == 6u) return max(min(abs(q.x - q.y), abs(q.x + q.y)) * 0.70711 - line * 0.62, box(q, 0.86, 0.1));
  if (s == 7u) return max(box(q, 1.0, 0.34), (abs(fract((q.x + q.y + 4.0) / 0.8) - 0.5) - 0.27) * 0.56);
  float e = box(q, 0.9, 0.34);
  return max(e, -e - line * 0.4);
}`;

/** A block: four corners around its centre, with a margin for the highlight. */
export const BLOCK_VERTEX = `#version 300 es
precision highp float;
layout(location=0) in vec3 position;   // centre, half a side
layout(location=1) in uvec4 look;   // state, flags, change
layout(location=2) in float at;     // when it changed, in seconds
uniform vec3 camera;                // upper left corner, pixels per unit
uniform vec2 view;                  // pixels
uniform float now;
uniform float reduced_motion;
uniform vec3 colours[9];
uniform vec3 shade;
out vec2 p;
flat out float size;
flat out uint state;
flat out vec3 colour;
flat out float faded;
flat out float light;
void main() {
  int corner = gl_VertexID & 3;
  vec2 c = vec2((corner & 1) == 0 ? -1.0 : 1.0, (corner & 2) == 0 ? -1.0 : 1.0);
  state = look.x;
  faded = float(look.y & 1u);
  float age = now - at;
  light = 0.0;
  float shrink = 1.0;
  if (state == 8u) shrink = reduced_motion > 0.5 ? 1.0 : 1.0 - 0.5 * clamp(age / 1.8, 0.0, 1.0);
  else if (look.z != 0u && reduced_motion < 0.5 && age >= 0.0 && age < 0.9) light = pow(1.0 - age / 0.9, 2.0);
  float grow = light > 0.0 ? 1.7 : 1.15;
  p = c * grow;
  colour = state == 1u ? mix(colours[1], shade, 0.13 * float(look.y >> 1)) : colours[state];
  if (state == 8u) faded = max(faded, 0.35 + 0.6 * clamp(age / 1.8, 0.0, 1.0));
  float half_side = position.z * shrink;
  size = 2.0 * half_side * camera.z;
  vec2 pixel = (position.xy + c * grow * half_side - camera.xy) * camera.z;
  gl_Position = position.z == 0.0 || state == 0u ? vec4(2.0, 2.0, 2.0, 1.0) : vec4(pixel / view * 2.0 - 1.0, 0.0, 1.0) * vec4(1.0, -1.0, 1.0, 1.0);
}`;

export const BLOCK_FRAGMENT = `#version 300 es
precision highp float;
in vec2 p;
flat in float size;
flat in uint state;
flat in vec3 colour;
flat in float faded;
flat in float light;
uniform vec3 glow;
out vec4 pixel;
${SHAPE}
void main() {
  float line = max(size > 40.0 ? 0.2 : 0.3, 3.0 / size);
  float d = outside(state, p, size, line);
  float cover = clamp(0.5 - d * size / 2.0, 0.0, 1.0);
  vec3 c = mix(colour, glow, light * 0.75);
  float alpha = cover * (faded >= 1.0 ? 0.2 : 1.0 - faded) * (state == 6u ? 0.8 : 1.0);
  float near = max(0.0, 1.0 - max(0.0, d) / 0.65);
  float halo = faded > 0.0 ? 0.0 : light * 0.6 * near * near;
  c = mix(mix(colour, glow, 0.3), c, cover);
  alpha = max(alpha, halo);
  pixel = vec4(c * alpha, alpha);
}`;

/** The background of a tile. */
export const RECT_VERTEX = `#version 300 es
precision highp float;
layout(location=0) in vec4 rect;    // x, y, width, height
layout(location=1) in vec4 fill;
layout(location=2) in vec4 edge;
uniform vec3 camera;
uniform vec2 view;
out vec2 p;
flat out vec2 halves;
flat out vec4 inner;
flat out vec4 outer;
void main() {
  int corner = gl_VertexID & 3;
  vec2 c = vec2(float(corner & 1), float((corner & 2) >> 1));
  vec2 a = floor((rect.xy - camera.xy) * camera.z + 0.5);
  vec2 b = floor((rect.xy + rect.zw - camera.xy) * camera.z + 0.5);
  halves = (b - a) / 2.0;
  p = (c * 2.0 - 1.0) * halves;
  inner = fill;
  outer = edge;
  gl_Position = vec4(mix(a, b, c) / view * 2.0 - 1.0, 0.0, 1.0) * vec4(1.0, -1.0, 1.0, 1.0);
}`;

export const RECT_FRAGMENT = `#version 300 es
precision highp float;
in vec2 p;
flat in vec2 halves;
flat in vec4 inner;
flat in vec4 outer;
uniform float round_corner;         // pixels
uniform float line;
out vec4 pixel;
void main() {
  float radius = min(round_corner, min(halves.x, halves.y) / 2.0);
  vec2 d = abs(p) - halves + radius;
  float e = min(max(d.x, d.y), 0.0) + length(max(d, 0.0)) - radius;
  float cover = clamp(0.5 - e, 0.0, 1.0);
  float rim = clamp(e + line + 0.5, 0.0, 1.0);
  pixel = vec4(mix(inner.rgb, outer.rgb, rim) * cover * inner.a, cover * inner.a);
}`;

/** A field: a tile zoomed out. It paints what far.ts describes and fields.ts paints. */
export const FIELD_VERTEX = `#version 300 es
precision highp float;
layout(location=0) in vec4 rect;    // x, y, width, height
layout(location=1) in uvec4 pressing; // the shares of the first bands
layout(location=2) in uvec4 calm;   // those of the others, and of the Pods that changed
layout(location=3) in uvec4 kind;   // the sign's state, the freshness of the changes, the kind of field, whether it has an edge
layout(location=4) in vec4 edge;
uniform vec3 camera;
uniform vec2 view;
uniform vec2 gap;                   // between tiles, in the layout's units and in pixels; see farGap
flat out ivec2 origin;
flat out ivec2 area;
flat out uvec4 low;
flat out uvec4 high;
flat out uvec4 what;
flat out vec3 rim;
void main() {
  int corner = gl_VertexID & 3;
  vec2 c = vec2(float(corner & 1), float((corner & 2) >> 1));
  vec2 a = floor((rect.xy - camera.xy) * camera.z + 0.5);
  vec2 b = floor((rect.xy + rect.zw + gap.x - camera.xy) * camera.z + 0.5) - gap.y;
  origin = ivec2(a);
  area = ivec2(b - a);
  low = pressing;
  high = calm;
  what = kind;
  rim = edge.rgb;
  gl_Position = vec4(mix(a, b, c) / view * 2.0 - 1.0, 0.0, 1.0) * vec4(1.0, -1.0, 1.0, 1.0);
}`;

export const FIELD_FRAGMENT = `#version 300 es
precision highp float;
precision highp int;
flat in ivec2 origin;
flat in ivec2 area;
flat in uvec4 low;
flat in uvec4 high;
flat in uvec4 what;
flat in vec3 rim;
uniform vec2 view;
uniform vec3 colours[9];
uniform vec3 ground;                // the tile
uniform vec3 deleted;               // the tile of a deleted Node
uniform vec3 text;
uniform int line;                   // the width of an edge
out vec4 pixel;
${SHAPE}
const uint BANDS[${BANDS.length}] = uint[](${BANDS.map((state) => `${state}u`).join(', ')});
int part(int band) { return int(band < 4 ? low[band] : high[band - 4]); }
int share(int part, int of) { return (2 * part * of + 255) / 510; }
int height(int band, int of) { return part(band) == 0 ? 0 : max(band < ${PRESSING} ? 2 : 1, share(part(band), of)); }
bool patterned(uint state, ivec2 at) {
  if (state == ${State.unready}u) return (at.x & 3) < 2;
  if (state == ${State.pending}u) return (at.x & 1) == 0;
  if (state == ${State.unknown}u) return ((at.x + at.y) & 3) < 2;
  return state != ${State.terminating}u || ((at.x + at.y) & 1) == 0;
}
vec3 stack(ivec2 at) {
  int strip = area.y < 6 ? 0 : area.y < 12 ? 2 : max(3, area.y * 16 / 100);
  int body = area.y - strip;
  int side = min(area.x / 2, body * 80 / 100);
  ivec2 in_sign = at - ivec2(0, (body - side) / 2);
  bool beside = what.x != 0u && side >= 5 && at.x < side && at.y < body;
  if (beside && (in_sign.y < 0 || in_sign.y >= side)) return ground;
  if (beside) {
    float size = float(side) * ${SIGN.toFixed(2)};
    vec2 q = 2.0 * (vec2(in_sign) + 0.5 - float(side) / 2.0) / size;
    float d = outside(what.x, q, size, max(size > 40.0 ? 0.2 : 0.3, 3.0 / size));
    return mix(ground, colours[what.x], clamp(0.5 - d * size / 2.0, 0.0, 1.0));
  }
  if (at.y >= body) {
    bool on = high.w > 0u && at.y > body && at.x < max(1, share(int(high.w), area.x));
    return on ? mix(ground, text, 0.25 + 0.75 * float(what.y) / ${FRESH.toFixed(1)}) : ground;
  }
  int used = 0;
  int total = 0;
  for (int band = 0; band < ${BANDS.length - 1}; band++) {
    used += height(band, body);
    total += part(band);
  }
  int ready = part(${BANDS.length - 1});
  int rest = ready == 0 ? 0 : max(1, share(total + ready, body) - used);
  int y = max(0, body - used - rest);
  if (at.y < y) return ground;
  for (int band = 0; band < ${BANDS.length - 1}; band++) {
    y += height(band, body);
    if (at.y < y) return patterned(BANDS[band], at) ? colours[BANDS[band]] : ground;
  }
  return mix(ground, colours[${State.ready}], ${CALM.toFixed(2)});
}
void main() {
  ivec2 at = ivec2(floor(vec2(gl_FragCoord.x, view.y - gl_FragCoord.y))) - origin;
  ivec2 from_edge = min(at, area - 1 - at);
  bool edged = what.w != 0u && min(from_edge.x, from_edge.y) < line;
  vec3 c = what.z == 1u ? deleted : ground;
  if (what.z == 0u) c = stack(at);
  if (edged) c = rim;
  // Unscheduled Pods.
  if (what.z == 2u && low.w > 0u && at.x < min(area.x, max(area.y, share(int(low.w), area.x)))) c = colours[${State.pending}];
  pixel = vec4(c, 1.0);
}`;
