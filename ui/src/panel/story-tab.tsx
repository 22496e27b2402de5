// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What happened to an object and to what belongs to it, as episodes: see docs/page.md. */

import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { mode, range, selection, selectionOf, storyLength, tab } from '../app/state';
import { count } from '../data/quantity';
import { walkList } from '../time/change-row';
import { momentOf, playhead, showChange } from '../time/playback';
import { spanWords } from '../time/window';
import { clock, full, when, zoned } from '../time/words';
import { others, Teller, type Cause, type Entry, type Named, type Told } from './story';
import { LENGTHS, maxPause, minPause, storyQuery, useStory } from './told';

/** How many entries of an episode are shown at first. */
const maxEntries = 200;

/** The episodes that are open, by the path of the story's object: they are still open when the reader returns. */
const opened = signal<{ path: string; keys: readonly string[] }>({ path: '', keys: [] });
const openOf = (path: string): readonly string[] => (opened.value.path === path ? opened.value.keys : []);
function open(path: string, key: string, on: boolean): void {
  const others = openOf(path).filter((one) => one !== key);
  opened.value = { path, keys: on ? [...others, key] : others };
}

/** `deleted` is when the object was deleted, in milliseconds since 1970; 0 if it was not. */
export function StoryTab({ path, version, deleted }: { path: string; version: unknown; deleted: number }) {
  const shown = mode.value;
  const playing = !!shown?.speed;
  // While it plays, the moment is read with each request.
  const asked = (): Parameters<typeof storyQuery>[0] => ({ range: range.value, moment: playing ? playhead.peek() : (shown?.time ?? 0), at: shown?.at ?? '', deleted, length: storyLength.value });
  const key = playing && !range.value && !deleted ? `playing ${storyLength.value}` : JSON.stringify(storyQuery(asked()));
  const { story, error, outdated } = useStory(path, key, () => storyQuery(asked()), range.value || deleted ? 0 : playing ? minPause : shown ? 0 : maxPause, version);
  const teller = useMemo(() => story && new Teller(story, path), [story, path]);
  return (
    <section class={`story ${outdated ? 'outdated' : ''}`} aria-label="Story" aria-busy={outdated}>
      <Span teller={teller} live={!shown && !deleted} />
      {error && <p class="failure">{error}</p>}
      {!teller && !error && <p class="muted">loading the story</p>}
      {teller && <Episodes teller={teller} path={path} />}
    </section>
  );
}

/** The time of the story, and how to choose another one. */
function Span({ teller, live }: { teller: Teller | null; live: boolean }) {
  return (
    <p class="span">
      {teller && <b>{clock(Date.parse(teller.story.from))} – {zoned(Date.parse(teller.story.to))}</b>}
      {range.value ? <button class="link" onClick={() => (range.value = null)}>clear the range</button> : (
        <label class="muted">{live ? 'the last' : 'the'} <select aria-label="Length of the story" value={storyLength.value} onChange={(e) => (storyLength.value = Number(e.currentTarget.value))}>
          {[...new Set([...LENGTHS, storyLength.value])].sort((a, b) => a - b).map((s) => <option key={s} value={s}>{spanWords(s)}</option>)}
        </select>{!live && ' before'}</label>
      )}
    </p>
  );
}

function Episodes({ teller, path }: { teller: Teller; path: string }) {
  const { story, episodes, main } = teller;
  // The answer comes first.
  const lead = main && main !== episodes[0] ? main : undefined;
  const notes = teller.notes();
  const toMain = (): void => {
    open(path, lead!.key, true);
    // After it was rendered.
    requestAnimationFrame(() => document.getElementById(idOf(lead!))?.focus());
  };
  return (
    <>
      {lead && (
        <section class={`lead ${lead.severity}`} aria-label="The most important episode">
          <Mark severity={lead.severity} />
          <When teller={teller} episode={lead} />
          <button class="title" title="Show its entries" onClick={toMain}><b>{lead.title}</b></button>
          <Causes teller={teller} episode={lead} />
        </section>
      )}
      <p class="muted small">{teller.number()}{episodes.length > 0 && `, written from ${count(story.versions, 'version')} of ${count(story.objects, 'object')}`}</p>
      {episodes.length > 0 && (
        <ol class="episodes">
          {episodes.map((episode) => <EpisodeRow key={episode.key} teller={teller} episode={episode} path={path} causes={episode !== lead && (episode === main || episode.severity !== 'info')} />)}
        </ol>
      )}
      {notes.length > 0 && <ul class="notes muted small" aria-label="Not known">{notes.map((note) => <li key={note}>{note}</li>)}</ul>}
    </>
  );
}

const idOf = ({ key }: Told): string => `episode ${key}`.replace(/\s/g, '-');

function EpisodeRow({ teller, episode, path, causes }: { teller: Teller; episode: Told; path: string; causes: boolean }) {
  const { key, severity, title, entries, main } = episode;
  const on = openOf(path).includes(key);
  const keys = (event: KeyboardEvent): void => {
    if (walkList(event, '.episodes') || (event.key !== 'ArrowRight' && event.key !== 'ArrowLeft')) return;
    open(path, key, event.key === 'ArrowRight');
    if (event.key === 'ArrowLeft') document.getElementById(idOf(episode))?.focus(); // the entries go
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <li class={`episode ${severity}`} onKeyDown={keys}>
      <Mark severity={severity} />
      <When teller={teller} episode={episode} />
      <button id={idOf(episode)} class="pick title" aria-expanded={on} title={on ? 'Close (←)' : 'Show its entries (→)'} onClick={() => open(path, key, !on)}>
        {severity !== 'info' && <span class="visually-hidden">{severity}: </span>}
        {main ? <b>{title}</b> : title}
        {' '}<span class="muted small number"><svg width="12" height="12" viewBox="0 0 16 16" aria-hidden="true"><path d={on ? 'M2.5 5.5h11L8 12z' : 'M5.5 2.5v11L12 8z'} /></svg> {count(entries.length, 'entry', 'entries')}</span>
      </button>
      {causes && <Causes teller={teller} episode={episode} />}
      {on && <Entries teller={teller} entries={entries} />}
    </li>
  );
}

/** Its shape shows the severity without colours. */
const Mark = ({ severity }: { severity: Told['severity'] }) => (
  <svg class="severity" width="14" height="14" viewBox="0 0 16 16" aria-hidden="true">
    <path d={severity === 'failed' ? 'M3.4 1.5 8 6.1l4.600-4.600 1.900 1.900L9.900 8l4.600 4.600-1.900 1.900L8 9.900l-4.600 4.600-1.900-1.900L6.100 8 1.500 3.400z' : severity === 'warning' ? 'M6.700 1h2.600l-.3 9H7zM8 11.600a1.700 1.700 0 1 1 0 3.400 1.700 1.700 0 0 1 0-3.400z' : 'M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6z'} />
  </svg>
);

/** Leads to the begin of an episode. */
function When({ teller, episode }: { teller: Teller; episode: Told }) {
  const first = episode.entries[0];
  const words = teller.span(episode);
  return first ? <button class="when link mono" title={`Show the board at its begin, ${when(first, full)}`} onClick={() => showEntry(teller, first)}>{words}</button> : <span class="when mono">{words}</span>;
}

/** What the objects say; the field leads to the version that says so, if that is one of the entries. */
function Causes({ teller, episode: { causes = [], entries } }: { teller: Teller; episode: Told }) {
  if (!causes.length) return null;
  const field = (cause: Cause) => {
    const entry = entries.find(({ path, resourceVersion }) => path === cause.path && resourceVersion === cause.resourceVersion);
    const words = <Breaks text={cause.field} />;
    return entry ? <button class="link mono" title={`Show the board at resourceVersion ${entry.resourceVersion}`} onClick={() => showEntry(teller, entry)}>{words}</button> : <span class="mono">{words}</span>;
  };
  return (
    <ul class="causes small" aria-label="What the objects say">
      {causes.map((cause, i) => (
        <li key={i}><span class="muted"><ObjectLink teller={teller} object={cause} />{others(cause)}, {field(cause)}: </span>{cause.text}</li>
      ))}
    </ul>
  );
}

function Entries({ teller, entries }: { teller: Teller; entries: Entry[] }) {
  const all = useMemo(() => signal(entries.length <= maxEntries), []);
  const listed = all.value ? entries : entries.slice(0, maxEntries);
  return (
    <>
      <ol class="entries">
        {listed.map((entry) => <EntryRow key={`${entry.path} ${entry.resourceVersion} ${entry.type}`} teller={teller} entry={entry} />)}
      </ol>
      {listed.length < entries.length && <button class="link more small" onClick={() => (all.value = true)}>show {(entries.length - listed.length).toLocaleString('en')} more</button>}
    </>
  );
}

function EntryRow({ teller, entry }: { teller: Teller; entry: Entry }) {
  const current = mode.value?.at === momentOf(entry);
  return (
    <li class={current ? 'current' : ''} onKeyDown={(event) => void walkList(event, '.episodes')}>
      <button class="pick link mono" aria-current={current ? 'true' : undefined} title={`Show the board at this time: ${when(entry, full)}, resourceVersion ${entry.resourceVersion}`} onClick={() => showEntry(teller, entry)}><time dateTime={entry.time}>{teller.clock(entry.time)}</time></button>
      <ObjectLink teller={teller} object={entry} />
      <span class="what"><Breaks text={teller.what(entry)} />{entry.by?.length ? <span class="muted"> by {entry.by.join(', ')}</span> : null}</span>
    </li>
  );
}

/** A text whose long words, such as the names of fields and labels, break at their dots and slashes. */
const Breaks = ({ text }: { text: string }) => <>{text.split(/(?<=[\w\]][./])(?=\w)/).map((part, i) => (i ? <><wbr />{part}</> : part))}</>;

/** Leads to the panel of an object, at the shown moment. */
function ObjectLink({ teller, object }: { teller: Teller; object: Named }) {
  const name = <>{object.kind} <span class="mono">{teller.name(object)}</span></>;
  const target = selectionOf(teller.path(object));
  const choose = (): void => {
    tab.value = 'overview';
    selection.value = target;
  };
  return target ? <button class="link object" title={`Show this ${object.kind}`} onClick={choose}>{name}</button> : <span class="object">{name}</span>;
}

/** Shows the moment of an entry. The story keeps its time. */
function showEntry({ story }: Teller, entry: Entry): void {
  void showChange(entry, (show) => {
    range.value ??= { from: Date.parse(story.from), to: Date.parse(story.to) };
    show();
  });
}
