// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What changed around here: of all that is recorded, in the range that was chosen, or around the moment that is shown. */

import { signal } from '@preact/signals';
import { Fragment } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { getJSON } from '../app/api';
import { now } from '../app/now';
import { parseFilter } from '../app/filter';
import { filter, marks, mode, range, selection, selectionOf, tab } from '../app/state';
import { SideTabs } from '../shell/side-tabs';
import { ChangeRow, showMoment } from './change-row';
import type { Counts, History, ObjectChange, Page } from './history';
import { goTo, playhead } from './playback';
import { unknownParts } from './plot';
import { clock } from './words';

/** How far around the moment, in seconds; while all is live, how far back. */
const REACHES = [5, 30, 120, 600, 3600] as const;
const reach = signal<number>(30);
/** Resources that were chosen; all if there is none. */
const kinds = signal<string[]>([]);
/** Changes per page, and the most that the gateway lists at once. */
const LIMIT = 100;
const maxLimit = 1000;
/** While all is live it is asked anew this often; while a hand moves, only after it has rested so long. In milliseconds. */
const PACE = 5000;
const REST = 250;

/** The words of the filter that say something of any object. */
const NAMED = new Set(['name', 'ns']);

const changeKey = ({ path, resourceVersion }: ObjectChange): string => `${path} ${resourceVersion}`;

export function Changes({ history }: { history: History }) {
  const { from, to } = useWindow();
  const [found, setFound] = useState<Page<ObjectChange> | null>(null);
  const [counts, setCounts] = useState<Counts | null>(null);
  const [words, say] = useState('');
  const list = useRef<HTMLOListElement>(null);
  const chosen = kinds.value;
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      // As many as are shown: a reader who went on to older changes keeps them.
      const limit = Math.min(maxLimit, Math.max(LIMIT, found?.items.length ?? 0));
      history.changes(from, to, limit, stop.signal, chosen).then((page) => {
        setFound(page);
        say('');
      }, (error: Error) => stop.signal.aborted || say(error.message));
      history.counts(from, to, stop.signal).then(setCounts, () => stop.signal.aborted || setCounts(null));
    }, found ? REST : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [history, from, to, chosen]);
  const older = (): void => {
    history.changes(from, to, LIMIT, new AbortController().signal, chosen, found!.more)
      .then((page) => setFound((old) => ({ items: [...(old?.items ?? []), ...page.items], more: page.more })), (error: Error) => say(error.message));
  };
  // Around a moment, what is next to it is what one wants to see first.
  useEffect(() => list.current?.querySelector('.here')?.scrollIntoView({ block: 'center' }), [found === null, from, to]);
  const terms = parseFilter(filter.value).filter((t) => NAMED.has(t.kind) && t.value);
  const items = useMemo(() => found?.items.filter((item) => terms.every(({ kind, value, not }) => (kind === 'ns' ? (item.namespace ?? '') : item.name).includes(value) !== not)), [found, filter.value]);
  const moment = playhead.value;
  const here = moment ? items?.findIndex((item) => Date.parse(item.time) <= moment) : -1;
  return (
    <aside class="side changes" aria-label="What changed">
      <SideTabs />
      <Span from={from} to={to} />
      <Kinds counts={counts} />
      <Marks />
      {words && <p class="failure">{words}</p>}
      {counts && unknownParts(counts).map((part) => <p key={part.from} class="gap-note muted">{part.gap ? `Nothing was recorded from ${clock(part.from)} to ${clock(part.to)}.` : part.to < to ? `What is recorded begins at ${clock(part.to)}.` : `What is recorded ends at ${clock(part.from)}.`}</p>)}
      {!found && !words && <p class="muted">asking what changed</p>}
      {items?.length === 0 && !found?.more && <p class="muted">Nothing changed{terms.length ? ' of what the filter names' : ''}.</p>}
      <div class="scroll">
        <ol class="changes-list" ref={list}>
          {items?.map((item, i) => (
            <Fragment key={changeKey(item)}>
              {i === here && i > 0 && <li class="here" aria-label="The moment that is shown"><span>{clock(moment)} is shown</span></li>}
              <ChangeRow
                change={item} path={item.path} current={mode.value?.at === `rv:${item.resourceVersion}`}
                choose={() => void choose(item, from, to)} title={<><span class="muted">{item.kind}</span> <span class="mono name">{item.kind === 'Event' ? item.name.replace(/\.[0-9a-f]+$/, '') : item.name}</span></>} where={item.namespace}
              />
            </Fragment>
          ))}
        </ol>
        {found?.more && <button class="link more" onClick={older}>older</button>}
      </div>
    </aside>
  );
}

/** From when to when: the range, or what is around the moment. It is the same until one of them changes. */
function useWindow(): { from: number; to: number } {
  const [beat, tick] = useState(0);
  const at = playhead.value;
  useEffect(() => {
    if (range.value || at) return;
    const timer = setInterval(() => document.hidden || tick((n) => n + 1), PACE);
    return () => clearInterval(timer);
  }, [range.value, at === 0]);
  const ms = reach.value * 1000;
  // While it plays, the window follows in steps.
  const middle = mode.value?.speed ? Math.floor(at / (ms / 4)) * (ms / 4) : at;
  return useMemo(() => {
    if (range.value) return { from: Math.floor(range.value.from), to: Math.ceil(range.value.to) };
    const end = now();
    return middle ? { from: middle - ms, to: Math.min(end, middle + ms) } : { from: end - 2 * ms, to: end };
  }, [range.value, middle, ms, beat]);
}

/** Shows the object of a change, at the moment of the change. The list stays as it is. */
async function choose(item: ObjectChange, from: number, to: number): Promise<void> {
  range.value ??= { from, to };
  showMoment(item);
  let path = item.path;
  if (item.kind === 'Event') path = await aboutPath(item);
  tab.value = 'overview';
  selection.value = selectionOf(path);
}

/** Where the object is that an Event is about; the Event itself if that is not on the board. */
async function aboutPath(item: ObjectChange): Promise<string> {
  try {
    const { involvedObject: about } = await getJSON<{ involvedObject?: { kind: string; namespace?: string; name: string } }>(item.path, `rv:${item.resourceVersion}`);
    if (about?.kind === 'Pod') return `/api/v1/namespaces/${about.namespace}/pods/${about.name}`;
    if (about?.kind === 'Node') return `/api/v1/nodes/${about.name}`;
  } catch {
    // It has been forgotten by now.
  }
  return item.path;
}

function Span({ from, to }: { from: number; to: number }) {
  const chosen = range.value;
  const at = playhead.value;
  return (
    <p class="span">
      <b>{clock(from)} – {clock(to)}</b>
      {chosen ? <button class="link" onClick={() => (range.value = null)}>all around</button> : (
        <label class="muted">{at ? 'around ±' : 'the last '}
          <select aria-label="How far" value={reach.value} onChange={(e) => (reach.value = Number(e.currentTarget.value))}>
            {REACHES.map((s) => <option key={s} value={s}>{spanWords(at ? s : 2 * s)}</option>)}
          </select>
        </label>
      )}
    </p>
  );
}

const spanWords = (s: number): string => (s < 60 ? `${s} s` : s < 3600 ? `${s / 60} min` : `${s / 3600} h`);

/** How much changed of what; each is a choice. */
function Kinds({ counts }: { counts: Counts | null }) {
  const chosen = kinds.value;
  const sum = (n: number[]): number => n.reduce((a, b) => a + b, 0);
  const all = (counts?.resources ?? []).map((r) => ({ name: r.resource, n: sum(r.added) + sum(r.modified) + sum(r.deleted) })).filter((r) => r.n || chosen.includes(r.name)).sort((a, b) => b.n - a.n);
  return (
    <div class="kinds" role="group" aria-label="Only these">
      {all.map(({ name, n }) => {
        const on = chosen.includes(name);
        return <button key={name} class="label" aria-pressed={on} title={name} onClick={() => (kinds.value = on ? chosen.filter((k) => k !== name) : [...chosen, name])}>{name.split('.')[0]} <b>{n.toLocaleString('en')}</b></button>;
      })}
    </div>
  );
}

/** What was marked, as ways back to it. */
function Marks() {
  if (!marks.value.length) return null;
  return (
    <div class="kinds" role="group" aria-label="Marks">
      {marks.value.map((mark) => (
        <span key={mark} class="label mark">
          <button title="Go there" onClick={() => goTo(mark)}>⚑ <b>{clock(mark)}</b></button>
          <button aria-label={`Take the mark at ${clock(mark)} away`} title="Take the mark away" onClick={() => (marks.value = marks.value.filter((m) => m !== mark))}>×</button>
        </span>
      ))}
    </div>
  );
}

