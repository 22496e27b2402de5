// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The list of changes of all recorded objects, in the selected range or around the shown moment. */

import { Fragment } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ApiError, getJSON } from '../app/api';
import { lost } from '../app/contact';
import { now } from '../app/now';
import { generalTerms } from '../app/filter';
import { ALL, filter, kinds, marks, mode, onlyDeleted, range, reach, selection, selectionOf, statusUpdates, tab } from '../app/state';
import { count } from '../data/quantity';
import { SideTabs } from '../shell/side-tabs';
import { ChangeRow } from './change-row';
import { Export, ExportButton } from './export';
import type { Counts, History, ObjectChange, Page } from './history';
import { goTo, momentOf, playhead, recordedFrom, showChange } from './playback';
import { unknownParts } from './plot';
import { notRecorded } from './unrecorded';
import { chipWords, hourReach, isAll, listWindow, none, REACHES, reachOf, spanWords, unknownWords, type Asked } from './window';
import { clock, zoned } from './words';

/** Changes per page, and the most that the gateway returns at once. */
const pageSize = 100;
const maxPageSize = 1000;
/** How often the list reloads while live, and how long after the last change of the range; in milliseconds. */
const reloadInterval = 5000;
const reloadDelay = 250;

const mayListNone = 'Changes of what you may not list are not shown, and you may list none of the recorded resources in all namespaces, and Pods in none.';

const changeKey = ({ path, resourceVersion }: ObjectChange): string => `${path} ${resourceVersion}`;

export function Changes({ history }: { history: History }) {
  const { from, to, asked } = useWindow();
  const [found, setFound] = useState<Page<ObjectChange> | null>(null);
  const [counts, setCounts] = useState<Counts | null>(null);
  const [message, setMessage] = useState('');
  const list = useRef<HTMLOListElement>(null);
  const chosen = kinds.value;
  const terms = generalTerms(filter.value);
  const selected = useMemo(() => ({ filter: terms, status: statusUpdates.value, deleted: onlyDeleted.value }), [terms, statusUpdates.value, onlyDeleted.value]);
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      // As many as are shown, so that older pages stay.
      const limit = Math.min(maxPageSize, Math.max(pageSize, found?.items.length ?? 0));
      history.changes(from, to, limit, stop.signal, chosen, '', selected).then((page) => {
        setFound(page);
        setMessage('');
      }, (error: Error) => stop.signal.aborted || setMessage(error instanceof ApiError && error.code === 403 && !chosen.length ? mayListNone : error.message));
      history.counts(from, to, stop.signal, [], selected).then(setCounts, () => stop.signal.aborted || setCounts(null));
    }, found ? reloadDelay : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [history, from, to, chosen, selected]);
  const older = (): void => {
    history.changes(from, to, pageSize, new AbortController().signal, chosen, found!.more, selected)
      .then((page) => setFound((old) => ({ items: [...(old?.items ?? []), ...page.items], more: page.more })), (error: Error) => setMessage(error.message));
  };
  // Scroll to the shown moment: by hand, since scrollIntoView moves the point at which Tab begins.
  useEffect(() => {
    const here = list.current?.querySelector('.here');
    const middle = (of: Element): number => of.getBoundingClientRect().top + of.getBoundingClientRect().height / 2;
    for (const scroller of here ? [here.closest('.scroll')!, here.closest('.changes')!] : []) { // on a phone, all of the sheet scrolls
      scroller.scrollTop += middle(here!) - middle(scroller);
    }
  }, [found === null, from, to]);
  const items = found?.items;
  const moment = playhead.value;
  // The list of all that is recorded starts with the recording.
  const all = !range.value && asked.reach === ALL;
  const unknown = counts ? unknownParts(counts, 'pods', lost.value).filter((part) => (part.gap || !all) && part.from < Date.parse(counts.to)) : [];
  const covered = counts ? { from: Date.parse(counts.from), to: Date.parse(counts.to) } : { from, to };
  const here = moment ? items?.findIndex((item) => Date.parse(item.time) <= moment) : -1;
  return (
    <aside class="side changes" aria-label="Changes">
      <SideTabs />
      <Span from={from} to={to} />
      <Export named={(found?.items ?? []).map((item) => item.namespace ?? '')} />
      <div class="filters">
        <Kinds counts={counts} found={found} />
        <Which />
        <Marks />
      </div>
      {message && <p class="failure">{message}</p>}
      {unknown.map((part) => <p key={part.from} class="gap-note muted">{unknownWords(part, covered, recordedFrom.value)}</p>)}
      {!!counts?.denied?.length && <p class="gap-note muted">Left out, where you may not list them: {counts.denied.join(', ')}.</p>}
      {counts && !chosen.length && <NotRecorded names={notRecorded(counts)} />}
      {!found && !message && <p class="muted empty">loading changes</p>}
      {items?.length === 0 && !found?.more && !unknown.some((part) => isAll(part, covered)) && (
        <p class="muted empty" role="status">
          {none(selected, asked)}
          {!range.value && !all && (
            <> Look at {!moment && asked.reach < hourReach && <><button class="link" onClick={() => (reach.value = hourReach)}>the last hour</button> or </>}<button class="link" onClick={() => (reach.value = ALL)}>all that is recorded</button>.</>
          )}
        </p>
      )}
      <div class="scroll">
        <ol class="changes-list" ref={list}>
          {items?.map((item, i) => (
            <Fragment key={changeKey(item)}>
              {i === here && i > 0 && <li class="here" aria-label="The shown moment"><span>{clock(moment)} is shown</span></li>}
              <ChangeRow
                change={item} path={item.path} current={mode.value?.at === momentOf(item)}
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

/** One line, on a phone, too: the whole of it is its title, and is shown while it has the focus. */
function NotRecorded({ names }: { names: string[] }) {
  if (!names.length) return null;
  const words = `Not recorded, so not listed: ${names.join(', ')}`;
  return <p class="gap-note line muted" title={words} tabIndex={0}>{words}</p>;
}

/** The time range of the list. The object stays the same until what decides about it changes. */
function useWindow(): { from: number; to: number; asked: Asked } {
  const [reloads, setReloads] = useState(0);
  const at = playhead.value;
  useEffect(() => {
    if (range.value || at) return;
    const timer = setInterval(() => document.hidden || setReloads((n) => n + 1), reloadInterval);
    return () => clearInterval(timer);
  }, [range.value, at === 0]);
  const reaches = reachOf(reach.value, onlyDeleted.value);
  const ms = (reaches || hourReach) * 1000;
  // During playback the window moves in steps.
  const middle = mode.value?.speed ? Math.floor(at / (ms / 4)) * (ms / 4) : at;
  return useMemo(() => {
    const asked = { range: range.value, moment: middle, reach: reaches, first: recordedFrom.value };
    return { ...listWindow(asked, now()), asked };
  }, [range.value, middle, reaches, recordedFrom.value, reloads]);
}

/** Shows the object of a change at the time of the change. The list keeps its range. */
async function choose(item: ObjectChange, from: number, to: number): Promise<void> {
  const path = item.kind === 'Event' ? await aboutPath(item) : item.path;
  await showChange(item, (show) => {
    range.value ??= { from, to };
    show();
    tab.value = 'overview';
    selection.value = selectionOf(path);
  });
}

/** The path of the object that an Event is about, or of the Event itself if the object is not on the board. */
async function aboutPath(item: ObjectChange): Promise<string> {
  try {
    const { involvedObject: about } = await getJSON<{ involvedObject?: { kind: string; namespace?: string; name: string } }>(item.path, `rv:${item.resourceVersion}`);
    if (about?.kind === 'Pod') return `/api/v1/namespaces/${about.namespace}/pods/${about.name}`;
    if (about?.kind === 'Node') return `/api/v1/nodes/${about.name}`;
  } catch {
    // The Event is no longer retained.
  }
  return item.path;
}

function Span({ from, to }: { from: number; to: number }) {
  const chosen = range.value;
  const at = playhead.value;
  const reaches = reachOf(reach.value, onlyDeleted.value);
  return (
    <p class="span">
      <b>{clock(from)} – {zoned(to)}</b>
      <span class="tools">
        {chosen ? <button class="link" onClick={() => (range.value = null)}>clear the range</button> : (
          <label class="muted">{reaches === ALL ? '' : at ? 'around ±' : 'the last '}
            <select aria-label="Range" value={reaches} onChange={(e) => (reach.value = Number(e.currentTarget.value))}>
              {REACHES.map((s) => <option key={s} value={s}>{s === ALL ? 'all that is recorded' : spanWords(at ? s : 2 * s)}</option>)}
            </select>
          </label>
        )}
        <ExportButton from={from} to={to} />
      </span>
    </p>
  );
}

/** The number of changes per resource. Each is a filter. */
function Kinds({ counts, found }: { counts: Counts | null; found: Page<ObjectChange> | null }) {
  const chosen = kinds.value;
  const sum = (n: number[]): number => n.reduce((a, b) => a + b, 0);
  const all = (counts?.resources ?? []).map((r) => ({ name: r.resource, n: sum(r.added) + sum(r.modified) + sum(r.deleted) })).filter((r) => r.n || chosen.includes(r.name)).sort((a, b) => b.n - a.n);
  const listed = (name: string): number | null => (found && !found.more && (!chosen.length || chosen.includes(name)) ? found.items.filter((item) => item.resource === name).length : null);
  return (
    <div class="kinds" role="group" aria-label="Filter by resource">
      {all.map(({ name, n }) => {
        const on = chosen.includes(name);
        return <button key={name} class="label" aria-pressed={on} title={`${name}: ${count(n, 'change')}, with status updates`} onClick={() => (kinds.value = on ? chosen.filter((k) => k !== name) : [...chosen, name])}>{name.split('.')[0]} <b>{chipWords(n, listed(name))}</b></button>;
      })}
    </div>
  );
}

/** Which changes are listed. */
function Which() {
  return (
    <div class="kinds which" role="group" aria-label="Listed changes">
      <button class="label" aria-pressed={statusUpdates.value} title="Also list changes of the status only, which controllers write" onClick={() => (statusUpdates.value = !statusUpdates.value)}>status updates</button>
      <button class="label" aria-pressed={onlyDeleted.value} title="List only deletions: what no longer exists" onClick={() => (onlyDeleted.value = !onlyDeleted.value)}>only deleted</button>
    </div>
  );
}

/** The marked moments. */
function Marks() {
  if (!marks.value.length) return null;
  return (
    <div class="kinds" role="group" aria-label="Marks">
      {marks.value.map((mark) => (
        <span key={mark} class="label mark">
          <button title="Go to this mark" onClick={() => goTo(mark)}>⚑ <b>{clock(mark)}</b></button>
          <button aria-label={`Remove the mark at ${clock(mark)}`} title="Remove the mark" onClick={() => (marks.value = marks.value.filter((m) => m !== mark))}>×</button>
        </span>
      ))}
    </div>
  );
}

