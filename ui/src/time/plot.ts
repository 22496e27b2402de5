// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Draws the strip: changes per bin, unobserved time hatched, the start of the recording, and the shown moment. time/legend.tsx explains the marks. */

import uPlot from 'uplot';
import { utc } from '../app/zone';
import { css, mix, type Theme } from '../board/palette';
import { SANS } from '../board/text';
import { byBar, type EventMark } from './events';
import { age } from '../data/quantity';
import type { Counts } from './history';
import { date, timeOfDay } from './words';

/** What is drawn over the bars. Times are in milliseconds since 1970. */
export interface PlotState {
  theme: Theme;
  /** The moment, 0 for now. */
  moment: number;
  marks: number[];
  range: { from: number; to: number } | null;
  counts: Counts | null;
  /** Since when there is no contact with the cluster, 0 while there is. */
  lost: number;
  events: EventMark[];
  /** From when on all Events are loaded; 0 if that is the whole range. */
  eventsSince: number;
}

/** The data of stacked bars: each series covers the lower part of the one before. */
export function stacked(counts: Counts): [number[], number[], number[], number[]] {
  const x: number[] = [];
  const all: number[] = [];
  const some: number[] = [];
  const modified: number[] = [];
  const start = Date.parse(counts.from) / 1000;
  for (let bin = 0; bin < counts.bins; bin++) {
    let a = 0;
    let m = 0;
    let d = 0;
    for (const r of counts.resources) {
      a += r.added[bin];
      m += r.modified[bin];
      d += r.deleted[bin];
    }
    x.push(start + (bin + 0.5) * counts.binSeconds);
    modified.push(m);
    some.push(m + a);
    all.push(m + a + d);
  }
  return [x, all, some, modified];
}

/** The parts of a range that were not recorded: outside all spans, in a gap, or after contact was `lost` if that is not 0. In milliseconds. */
export function unknownParts(counts: Counts, resource = 'pods', lost = 0): { from: number; to: number; gap: boolean }[] {
  // What the reader may not list is recorded all the same, as something that they may.
  const one = counts.resources.find((r) => r.resource === resource || counts.denied?.includes(resource));
  const from = Date.parse(counts.from);
  const to = Date.parse(counts.to);
  if (!one?.spans.length) return [{ from, to, gap: false }];
  const out: { from: number; to: number; gap: boolean }[] = [];
  let at = from;
  for (const span of [...one.spans].sort((a, b) => Date.parse(a.from) - Date.parse(b.from))) {
    if (Date.parse(span.from) > at) out.push({ from: at, to: Date.parse(span.from), gap: false });
    at = Math.max(at, Date.parse(span.to));
  }
  for (const gap of one.gaps) out.push({ from: Date.parse(gap.from), to: Date.parse(gap.to), gap: true });
  if (lost) out.push({ from: lost, to: Infinity, gap: true });
  return out;
}

export function makePlot(parent: HTMLElement, state: PlotState): uPlot {
  const bars = uPlot.paths.bars!({ size: [0.84, 14], radius: 0.25 });
  const ratio = (): number => devicePixelRatio || 1;
  const series = (colour: () => string): uPlot.Series => ({ paths: bars, fill: colour, stroke: colour, width: 0, points: { show: false } });
  return new uPlot({
    width: Math.max(100, parent.clientWidth),
    height: Math.max(40, parent.clientHeight),
    // Room for Events and marks above the bars.
    padding: [6, 0, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    // The axis is in whole hours and days of the page's time zone.
    tzDate: (seconds) => (utc.peek() ? uPlot.tzDate(new Date(seconds * 1000), 'UTC') : new Date(seconds * 1000)),
    scales: { x: { time: true }, y: { range: (_u, _min, max) => [0, Math.max(4, max * 1.35)] } },
    axes: [
      { stroke: () => css(state.theme.muted), font: `11px ${SANS}`, grid: { show: false }, ticks: { show: false }, size: 18, gap: 2, space: 90, values: (u, ticks, _i, _space, step) => ticks.map((t) => (inside(u, t) ? tickText(t * 1000, step) : '')) },
      { show: false },
    ],
    series: [
      {},
      series(() => css(state.theme.state.failing)),
      series(() => css(state.theme.state.ready)),
      series(() => css(mix(state.theme.edge, state.theme.muted, 0.55))),
    ],
    hooks: {
      drawClear: [(u) => drawUnknown(u, state, ratio())],
      draw: [(u) => drawMarks(u, state, ratio())],
    },
  }, [[], [], [], []], parent);
}

/** Whether the label at a time fits between the edges. */
const inside = (u: uPlot, t: number): boolean => u.valToPos(t, 'x') > 24 && u.valToPos(t, 'x') < u.width - 24;

/** The label of a tick: hours and minutes, with seconds if ticks are close, with the day if they are far apart. */
export function tickText(ms: number, step: number): string {
  const day = date(ms).slice(5);
  const time = timeOfDay(ms).slice(0, 5);
  if (step >= 86_400) return day;
  return step < 60 ? timeOfDay(ms) : step >= 3600 * 6 || time === '00:00' ? `${day} ${time}` : time;
}

function drawUnknown(u: uPlot, { theme, counts, range, lost }: PlotState, ratio: number): void {
  if (!counts) return;
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  for (const part of unknownParts(counts, 'pods', lost)) {
    const from = u.valToPos(part.from / 1000, 'x', true);
    const to = Math.min(left + width, Math.max(from + 2, u.valToPos(part.to / 1000, 'x', true)));
    ctx.save();
    ctx.beginPath();
    ctx.rect(from, top, to - from, height);
    ctx.clip();
    ctx.strokeStyle = css(part.gap ? mix(theme.edge, theme.state.unready, 0.5) : theme.edge);
    ctx.lineWidth = 2 * ratio;
    const step = 7 * ratio;
    for (let x = Math.floor((from - height) / step) * step; x < to; x += step) {
      ctx.beginPath();
      ctx.moveTo(x, top + height);
      ctx.lineTo(x + height, top);
      ctx.stroke();
    }
    ctx.restore();
    // The start of the recording.
    if (!part.gap && to < left + width - 1) {
      ctx.fillStyle = css(theme.muted);
      ctx.fillRect(to - ratio, top, ratio, height);
    }
  }
  if (range) {
    const from = u.valToPos(range.from / 1000, 'x', true);
    ctx.fillStyle = css(theme.accent, 0.18);
    ctx.fillRect(from, top, u.valToPos(range.to / 1000, 'x', true) - from, height);
  }
  ctx.restore();
}

function drawMarks(u: uPlot, { theme, moment, marks, counts, events, eventsSince }: PlotState, ratio: number): void {
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  drawEvents(u, events, (counts?.binSeconds ?? 1) * 1000, theme, ratio);
  // From where on there are Events, if there are too many.
  const since = eventsSince ? u.valToPos(eventsSince / 1000, 'x', true) : left;
  if (events.length && since > left + 2 * ratio) {
    ctx.fillStyle = css(theme.muted);
    ctx.font = `${11 * ratio}px ${SANS}`;
    ctx.fillRect(since - ratio, top, ratio, 12 * ratio);
    ctx.textAlign = 'right';
    if (since > left + 90 * ratio) ctx.fillText('all Events from here', since - 4 * ratio, top + 10 * ratio);
  }
  for (const mark of marks) {
    const x = u.valToPos(mark / 1000, 'x', true);
    if (x < left || x > left + width) continue;
    // A flag on a pole.
    ctx.fillStyle = css(theme.text);
    ctx.fillRect(x - ratio / 2, top, ratio, height);
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x + 9 * ratio, top + 4 * ratio);
    ctx.lineTo(x, top + 8 * ratio);
    ctx.fill();
  }
  if (!moment) return;
  const x = u.valToPos(moment / 1000, 'x', true);
  const outside = beyond(moment, (u.scales.x.min ?? 0) * 1000, (u.scales.x.max ?? 0) * 1000);
  if (outside) {
    const later = moment > (u.scales.x.max ?? 0) * 1000;
    const [edge, inward] = later ? [left + width, -1] : [left, 1];
    ctx.fillStyle = css(theme.accent);
    ctx.beginPath();
    ctx.moveTo(edge, top + 8 * ratio);
    ctx.lineTo(edge + inward * 8 * ratio, top + 2 * ratio);
    ctx.lineTo(edge + inward * 8 * ratio, top + 14 * ratio);
    ctx.fill();
    ctx.font = `${11 * ratio}px ${SANS}`;
    ctx.textAlign = later ? 'right' : 'left';
    ctx.fillText(outside, edge + inward * 12 * ratio, top + 12 * ratio);
    return;
  }
  ctx.fillStyle = css(theme.accent);
  ctx.fillRect(x - ratio, top, 2 * ratio, height);
  ctx.beginPath();
  ctx.arc(x, top + 3 * ratio, 4 * ratio, 0, 2 * Math.PI);
  ctx.fill();
}

/** How far a moment is outside of a range, in words; empty inside of it, and at its ends. */
export function beyond(moment: number, from: number, to: number): string {
  const slack = (to - from) / 500;
  return moment < from - slack ? `${age((from - moment) / 1000)} earlier` : moment > to + slack ? `${age((moment - to) / 1000)} later` : '';
}

/** Draws Events as diamonds along the upper edge, one per bar, for Warnings larger and on top. Those at the same position are one diamond. */
function drawEvents(u: uPlot, events: EventMark[], bar: number, theme: Theme, ratio: number): void {
  const { ctx } = u;
  const { left, top, width } = u.bbox;
  const groups = byBar(events, bar);
  for (const warning of [false, true]) {
    const r = (warning ? 4.5 : 2.5) * ratio;
    const positions = new Set<number>();
    for (const group of groups) {
      if (warning ? group.warnings : group.others) positions.add(Math.round(u.valToPos(group.time / 1000, 'x', true) / (2 * r)));
    }
    ctx.fillStyle = css(warning ? theme.state.unready : mix(theme.edge, theme.muted, 0.7));
    for (const position of positions) {
      const x = position * 2 * r;
      const y = top + 6 * ratio;
      if (x < left || x > left + width) continue;
      ctx.beginPath();
      ctx.moveTo(x, y - r);
      ctx.lineTo(x + r, y);
      ctx.lineTo(x, y + r);
      ctx.lineTo(x - r, y);
      ctx.fill();
    }
  }
}
