// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The objects of any resource as a table, with the API server's columns. Only the rows in view are rendered. */

import { Component } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { continuing } from '../app/address';
import { lost } from '../app/contact';
import { session } from '../app/login';
import { filter, kind, mode, pathOf, refresh, selection, selectionOf, sheet, view } from '../app/state';
import { rowHeight } from '../app/window';
import { count } from '../data/quantity';
import { bySlots, windowOf } from '../shell/rows';
import { reveal, useScroll } from '../shell/scrolling';
import { NotKnown } from '../time/nearest';
import { playhead } from '../time/playback';
import { zoned } from '../time/words';
import { cellText, inapplicable, NAMESPACE, type Grouping, type Heading, type Line } from './lines';
import { learn, problem, resources } from './known';
import { collection, named, type Resource } from './resources';
import { objectNamed, read } from './search';
import type { Source } from './source';
import { KindTable } from './table';
import { maxTextWidth, template, widthOf } from './widths';

/** How often a replay, and a resource that cannot be watched, are read again, in milliseconds. */
const replayInterval = 1000;
const pollInterval = 10_000;

/** The moment that the table shows, as /at takes it. */
function shownMoment(): string {
  const at = mode.value;
  if (!at?.speed) return at?.at ?? '';
  return new Date(Math.floor(playhead.value / replayInterval) * replayInterval).toISOString();
}

export function Kinds() {
  useEffect(() => void learn(), [kind.value, session.value.number]);
  if (problem.value) return <Empty>The resources of the cluster are not known: {problem.value} <button class="link" onClick={() => void learn()}>Try again</button></Empty>;
  if (!resources.value) return <Empty>reading which resources there are</Empty>;
  const resource = named(resources.value, kind.value);
  if (!resource) return <Empty>The cluster has no resource {kind.value} that can be listed. <button class="link" onClick={() => (kind.value = '')}>Show the Pods</button></Empty>;
  return <Grid key={`${resource.id} ${session.value.number}`} resource={resource} />;
}

const Empty = ({ children }: { children: preact.ComponentChildren }) => <div class="table kinds empty" tabIndex={0}><p role="status">{children}</p></div>;

function Grid({ resource }: { resource: Resource }) {
  const moment = shownMoment();
  const [unread, setUnread] = useState(false);
  // In an outage, the gateway has not cached what nobody has read before: then this is the last recorded state.
  const at = moment || (unread && lost.value ? new Date(lost.value).toISOString() : '');
  const table = useMemo(() => new KindTable(resource, at), []);
  const element = useRef<HTMLDivElement>(null);
  const box = useScroll(element);
  const [wide, setWide] = useState(false);
  const reached = useRef('');
  const first = useRef(true);
  useEffect(() => {
    if (!first.current) table.show(at, !!mode.peek()?.speed);
    first.current = false;
    if (at || resource.watched) return undefined;
    const timer = setInterval(() => document.hidden || table.show('', true), pollInterval);
    return () => clearInterval(timer);
  }, [at]);
  useEffect(() => {
    const wake = (): void => void (document.hidden || table.source.wake());
    document.addEventListener('visibilitychange', wake);
    return () => {
      document.removeEventListener('visibilitychange', wake);
      table.close();
    };
  }, []);
  useEffect(() => {
    table.filter = filter.value;
    table.rearrange();
  }, [filter.value]);
  void table.version.value;
  void refresh.value; // ages
  const { source } = table;
  const fails = !moment && source.problem !== '' && !source.complete;
  useEffect(() => setUnread(lost.value > 0 && (unread || fails)), [fails, lost.value]);
  const lines = table.arranged();
  const columns = useMemo(() => {
    const shown = source.columns.map((_, i) => i).filter((i) => wide || source.columns[i].priority === 0);
    return resource.namespaced ? [NAMESPACE, ...shown] : shown;
  }, [source.columns, wide]);
  const { widths, style } = useMemo(() => {
    const some = lines.sorted.slice(0, 200);
    const now = table.now();
    const widths = columns.map((i) => widthOf(nameOf(table, i), some.map((line) => textOf(table, line, i, now))));
    return { widths, style: { gridTemplateColumns: template(widths) } };
  }, [source.columns, source.complete, wide, resource.id, source.lines.size > 20]);
  const { from, to } = windowOf(lines.length, box.top, box.height, rowHeight(), 4);
  const slots = Math.ceil(box.height / rowHeight()) + 10;
  // Readers of the document find the lines in their order when they stand still.
  const rendered = box.moving ? bySlots(from, to, slots) : bySlots(from, to, slots).sort((a, b) => a - b);
  const now = Math.floor(table.now());
  const selected = selection.value ? pathOf(selection.value) : '';
  const go = (event: KeyboardEvent): void => {
    if (event.target !== element.current) return;
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const only = lines.sorted;
    const at = only.findIndex((line) => line.key === reached.current);
    const n = Math.min(only.length - 1, Math.max(0, at < 0 ? 0 : at + by));
    const next = only[n];
    if (!next) return;
    reached.current = next.key;
    continuing(() => choose(resource, next));
    reveal(element.current!, lines.indexOf(n));
  };
  return (
    <>
      <Bar table={table} recorded={!moment && at !== '' && source.complete} wide={wide} setWide={setWide} hasWide={source.columns.some(({ priority }) => priority > 0)} />
      {missing(source) && <div class="below-bar"><NotKnown kind={resource.kind} resource={resource.id} why={missing(source)} /></div>}
      <div class="table kinds" ref={element} tabIndex={0} role="grid" aria-label={resource.kind} aria-rowcount={lines.length + 1} aria-colcount={columns.length} onKeyDown={go}>
        <div class="head" role="row" aria-rowindex={1} style={style}>
          {columns.map((i) => <Title key={i} table={table} column={i} />)}
        </div>
        <div class="body" style={{ height: `${lines.length * rowHeight()}px` }} role="rowgroup">
          {rendered.map((index) => {
            const line = lines.at(index);
            return 'heading' in line
              ? <Group key={`group ${index % slots}`} line={line} index={index} span={columns.length} />
              : <Row key={index % slots} table={table} line={line} index={index} top={index * rowHeight()} columns={columns} widths={widths} style={style} now={now} selected={selected === objectPath(resource, line)} />;
          })}
        </div>
      </div>
    </>
  );
}

/** Why nothing is known of a moment of the past; empty if it is. */
const missing = ({ complete, problem }: Source): string => (mode.value && !complete ? problem : '');

/** What is shown, and how. */
function Bar({ table, recorded, wide, setWide, hasWide }: { table: KindTable; recorded: boolean; wide: boolean; setWide: (on: boolean) => void; hasWide: boolean }) {
  void table.version.value; // the props stay the same
  const { resource, source, lines } = table;
  const others = inapplicable(filter.value);
  const unlisted = source.problem ? objectNamed(resource, read(filter.value, [])) : null;
  const total = source.lines.size;
  const matching = lines.sorted.length;
  return (
    <div class="kinds-bar">
      <h2>{resource.kind}</h2>
      <span class="muted mono">{resource.id}</span>
      <span role="status">
        {missing(source) || (source.problem && !source.complete && !total) ? 'not known' : matching === total ? count(total, 'object') : `${matching.toLocaleString('en')} of ${count(total, 'object')}`}
        {!source.complete && !source.problem && ' so far'}
        {source.namespaces && `, in the ${count(source.namespaces.length, 'namespace')} that you may read`}
      </span>
      {recorded && lost.value > 0 && <span class="failure" role="alert">Unknown since {zoned(lost.value)}. This is the last recorded state.</span>}
      {source.problem && !missing(source) && <span class="failure" role="alert">{source.problem}</span>}
      {unlisted && <button class="link" onClick={() => (selection.value = selectionOf(unlisted.path))}>Show {resource.kind} {unlisted.name}{unlisted.namespace && ` in ${unlisted.namespace}`}</button>}
      {others.length > 0 && <span class="muted">{others.map((term) => term.key || term.kind).join(', ')}: only of Pods</span>}
      <span class="choices">
        {resource.namespaced && (
          <label>group <select value={table.grouping} onChange={(e) => { table.grouping = e.currentTarget.value as Grouping; table.rearrange(); }}>
            <option value="">none</option><option value="namespace">namespace</option><option value="owner">owner</option>
          </select></label>
        )}
        {hasWide && <label><input type="checkbox" checked={wide} onChange={(e) => setWide(e.currentTarget.checked)} /> wide</label>}
        <button class="link" title="These objects as a spreadsheet" onClick={() => { sheet.value = ''; view.value = 'sheet'; }}>Sheet</button>
        <button class="link" onClick={() => { kind.value = ''; view.value = 'board'; }}>Board</button>
      </span>
    </div>
  );
}

function Title({ table, column }: { table: KindTable; column: number }) {
  void table.version.value;
  const on = table.sorting.by === column;
  const { description = '' } = table.source.columns[column] ?? {};
  const sort = (): void => {
    table.sorting = { by: column, down: on && !table.sorting.down };
    table.rearrange();
  };
  return (
    <span role="columnheader" aria-sort={on ? (table.sorting.down ? 'descending' : 'ascending') : 'none'}>
      <button title={description} onClick={sort}>{nameOf(table, column)}{on && (table.sorting.down ? ' ↓' : ' ↑')}</button>
    </span>
  );
}

const Group = ({ line, index, span }: { line: Heading; index: number; span: number }) => (
  <div class="line group" role="row" aria-rowindex={index + 2} style={{ transform: `translateY(${index * rowHeight()}px)` }}>
    <span role="gridcell" aria-colspan={span}><b>{line.heading || 'no owner'}</b> <span class="muted">{line.count}</span></span>
  </div>
);

interface RowProps {
  table: KindTable;
  line: Line;
  index: number;
  /** In pixels. */
  top: number;
  columns: number[];
  /** Of the columns. */
  widths: number[];
  style: { gridTemplateColumns: string };
  now: number;
  selected: boolean;
}

/** A row. It is rendered again only if one of its properties is another, so it must not use signals. */
class Row extends Component<RowProps> {
  shouldComponentUpdate(next: RowProps): boolean {
    return (Object.keys(next) as (keyof RowProps)[]).some((name) => next[name] !== this.props[name]);
  }

  render({ table, line, index, top, columns, widths, style, now, selected }: RowProps) {
    return (
      <div class="line" role="row" aria-rowindex={index + 2} aria-selected={selected} style={{ ...style, transform: `translateY(${top}px)` }} onClick={() => choose(table.resource, line)}>
        {columns.map((i, at) => {
          const text = textOf(table, line, i, now);
          const long = maxTextWidth(text) > widths[at];
          const look = i === 0 ? 'mono' : i === NAMESPACE ? 'muted' : '';
          return <span key={i} role="gridcell" class={long ? `${look} long` : look} title={long ? text : undefined}>{text}</span>;
        })}
      </div>
    );
  }
}

const nameOf = (table: KindTable, column: number): string => table.source.columns[column]?.name ?? 'Namespace';

const textOf = (table: KindTable, line: Line, column: number, now: number): string => (column === NAMESPACE ? line.namespace : cellText(line, table.source.columns, column, now));

const objectPath = (resource: Resource, line: Line): string => `${collection(resource, line.namespace)}/${line.name}`;

const choose = (resource: Resource, line: Line): void => void (selection.value = selectionOf(objectPath(resource, line)));
