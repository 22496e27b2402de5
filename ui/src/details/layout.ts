// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Where the graph of relations has its objects: in columns around the shown one, many of a kind as one group. */

import type { Edge, Graph, Vertex } from './edges';
import { plural } from './objects';

/** Something in a column: an object, or a group of them. */
export interface Box {
  id: string;
  /** The objects: one, or those of a group. */
  members: Vertex[];
  /** What it is to the object or the group next to it, towards the centre: mounts, selects. */
  words: string;
  /** That object or group, in words. */
  next: string;
  /** The column: 0 is the shown object, left of it is what leads to it. */
  column: number;
  /** A group, folded or open. */
  group: '' | 'folded' | 'open';
  x: number;
  y: number;
}

export interface Line {
  from: Box;
  to: Box;
}

export interface Layout {
  boxes: Box[];
  lines: Line[];
  width: number;
  height: number;
}

export const boxWidth = 140;
export const boxHeight = 44;
const gapX = 84;
const gapY = 8;
const margin = 8;
/** More of a kind than this are a group. */
const maxAlone = 3;
/** An open group shows at most this many. */
export const maxOpen = 60;
/** Lower columns are in the middle of this height. */
const middle = 320;

/** The columns of what leads to the centre and of what it leads to, at most so far. */
export function columnsOf({ vertices, edges }: Graph, centre: string, left: number, right: number): Map<string, number> {
  const columns = new Map([[centre, 0]]);
  for (const [sign, depth, near, far] of [[1, right, 'from', 'to'], [-1, left, 'to', 'from']] as const) {
    const leading = by(edges, near);
    let outer = [centre];
    for (let d = 1; d <= depth; d++) {
      const inner = outer;
      outer = [];
      for (const id of inner) {
        for (const edge of leading.get(id) ?? []) {
          if (columns.has(edge[far]) || !vertices.has(edge[far])) continue;
          columns.set(edge[far], sign * d);
          outer.push(edge[far]);
        }
      }
    }
  }
  return columns;
}

/** Edges by one of their ends. */
function by(edges: Edge[], end: 'from' | 'to'): Map<string, Edge[]> {
  const found = new Map<string, Edge[]>();
  for (const edge of edges) {
    const all = found.get(edge[end]);
    if (all) all.push(edge);
    else found.set(edge[end], [edge]);
  }
  return found;
}

/** Lays out a graph. `open` has the ids of the groups that are open. */
export function layout(graph: Graph, centre: string, left: number, right: number, open: ReadonlySet<string> = new Set()): Layout {
  const columns = columnsOf(graph, centre, left, right);
  const between = graph.edges.filter(({ from, to }) => columns.has(from) && columns.has(to) && columns.get(to)! - columns.get(from)! === 1);
  const [byFrom, byTo] = [by(between, 'from'), by(between, 'to')];
  const used = new Set(columns.values());
  const boxes: Box[] = [{ id: centre, members: [graph.vertices.get(centre)!], words: '', next: '', column: 0, group: '', x: 0, y: 0 }];
  /** The box that an object is in. */
  const boxOf = new Map<string, Box>([[centre, boxes[0]]]);
  // From the centre to the outside, since a group is of what is next to the same boxes.
  for (const sign of [1, -1]) {
    for (let column = sign; used.has(column); column += sign) {
      const made = boxesOf(column, sign);
      for (const box of made) for (const member of box.members) if (box.group !== 'open') boxOf.set(member.id, box);
      boxes.push(...made);
    }
  }
  const lines = linesOf(between, boxOf);
  return { boxes, lines, ...place(boxes, lines) };

  function boxesOf(column: number, sign: number): Box[] {
    const groups = new Map<string, { members: Vertex[]; words: string; next: string }>();
    for (const [id, at] of columns) {
      if (at !== column) continue;
      const inner = (sign > 0 ? byTo : byFrom).get(id) ?? [];
      const leads = (sign > 0 ? byFrom : byTo).has(id);
      const words = [...new Set(inner.map(({ name }) => name))].sort().join(', ');
      const beside = [...new Set(inner.flatMap((edge) => boxOf.get(sign > 0 ? edge.from : edge.to) ?? []))].sort((a, b) => (a.id < b.id ? -1 : 1));
      const vertex = graph.vertices.get(id)!;
      const key = `${column} ${vertex.kind} ${words} ${leads} ${beside.map((box) => box.id).join()}`;
      const group = groups.get(key) ?? { members: [], words, next: beside.map(named).join(', ') };
      group.members.push(vertex);
      groups.set(key, group);
    }
    return [...groups].flatMap(([key, { members, words, next }]): Box[] => {
      members.sort((a, b) => (a.name < b.name ? -1 : 1));
      const alone = (member: Vertex): Box => ({ id: member.id, members: [member], words, next, column, group: '', x: 0, y: 0 });
      if (members.length <= maxAlone) return members.map(alone);
      const group: Box = { id: key, members, words, next, column, group: open.has(key) ? 'open' : 'folded', x: 0, y: 0 };
      return group.group === 'open' ? [group, ...members.slice(0, maxOpen).map(alone)] : [group];
    });
  }
}

/** A box in words. */
const named = ({ group, members }: Box): string => (group ? `${members.length} ${plural(members[0].kind)}` : `${members[0].kind} ${members[0].name}`);

function linesOf(edges: Edge[], boxOf: Map<string, Box>): Line[] {
  const lines = new Map<string, Line>();
  for (const edge of edges) {
    const [from, to] = [boxOf.get(edge.from), boxOf.get(edge.to)];
    if (from && to) lines.set(`${from.id} ${to.id}`, { from, to });
  }
  return [...lines.values()];
}

/** Gives each box its place: columns from left to right, boxes next to those that they are connected with. */
function place(boxes: Box[], lines: Line[]): { width: number; height: number } {
  const columns = [...new Set(boxes.map(({ column }) => column))].sort((a, b) => a - b);
  const first = columns[0];
  const tall = (n: number): number => n * (boxHeight + gapY) - gapY;
  let height = 0;
  for (const column of [...columns].sort((a, b) => Math.abs(a) - Math.abs(b))) {
    const inColumn = boxes.filter((box) => box.column === column);
    const beside = new Map(inColumn.map((box) => [box.id, besideOf(box, lines)]));
    // Members of an open group stay below it.
    const heads = new Map<string, Box>();
    for (const box of inColumn) if (box.group === 'open') for (const { id } of box.members) heads.set(id, box);
    const rank = (box: Box): number => beside.get((heads.get(box.id) ?? box).id) ?? 0;
    const order = new Map(inColumn.map((box, i) => [box, i]));
    inColumn.sort((a, b) => rank(a) - rank(b) || order.get(a)! - order.get(b)!);
    const top = Math.max(0, (Math.min(middle, Math.max(...columns.map((one) => tall(boxes.filter((box) => box.column === one).length)))) - tall(inColumn.length)) / 2);
    for (const [i, box] of inColumn.entries()) {
      box.x = margin + (column - first) * (boxWidth + gapX);
      box.y = margin + top + i * (boxHeight + gapY);
      height = Math.max(height, box.y + boxHeight + margin);
    }
  }
  return { width: 2 * margin + columns.length * (boxWidth + gapX) - gapX, height };
}

/** The mean height of the boxes next to one, towards the centre. */
function besideOf(box: Box, lines: Line[]): number {
  const ids = new Set([box.id, ...(box.group === 'open' ? box.members.map(({ id }) => id) : [])]);
  const beside = lines.flatMap(({ from, to }) => (ids.has(from.id) && Math.abs(to.column) < Math.abs(box.column) ? [to.y] : ids.has(to.id) && Math.abs(from.column) < Math.abs(box.column) ? [from.y] : []));
  return beside.length ? beside.reduce((sum, y) => sum + y, 0) / beside.length : 0;
}
