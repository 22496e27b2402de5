// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The top bar: name, filter, counts by state, and connection. */

import { signal } from '@preact/signals';
import { absent, lost, silence } from '../app/contact';
import { problemOf } from '../app/filter';
import { asked, loggedIn, logOut, user } from '../app/login';
import { ended, limits, now, only } from '../app/now';
import { refresh, changes, cluster, filter, help, kind, mode, needs, scope, selection, status, switchTheme, theme } from '../app/state';
import { phone } from '../app/window';
import { age, count } from '../data/quantity';
import { State, STATES, type StateName } from '../data/state';
import { Shape } from './shape';
import { sizeOf, WORDS } from './words';

export function TopBar() {
  void refresh.value;
  return (
    <header class={`top ${lost.value ? 'lost' : ''}`}>
      <a class="brand" href={location.pathname} title="Watchkeeper">
        <svg width="20" height="20" viewBox="0 0 16 16" aria-hidden="true">
          <rect class="ready" x="1" y="1" width="6" height="6" rx="1.6" /><rect class="ready" x="9" y="1" width="6" height="6" rx="1.6" />
          <rect class="ready" x="1" y="9" width="6" height="6" rx="1.6" /><path class="failing" d="M12 8.6 15.2 15H8.8z" />
        </svg>
        Watchkeeper
      </a>
      <Search />
      <Legend />
      <Connection />
      {loggedIn.value && <button class="link logout" title={`${user.value ? `Logged in as ${user.value.username}. ` : ''}Logging out forgets the token.`} onClick={logOut}>Log out</button>}
      <button class="icon" aria-pressed={needs.value && !changes.value} title="Needs attention (N)" aria-label="Needs attention" onClick={() => { needs.value = !needs.value || changes.value || selection.value !== null; selection.value = null; changes.value = false; }}>
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path d="M2 3h12v1.4H2zM2 7.3h12v1.4H2zM2 11.6h8V13H2z" /></svg>
      </button>
      <button class="icon" title={theme.value.name === 'dark' ? 'Light' : 'Dark'} aria-label={`Change to ${theme.value.name === 'dark' ? 'light' : 'dark'} colours`} onClick={switchTheme}>
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path fill-rule="evenodd" d="M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zm0 1.4v10.2A5.1 5.1 0 0 0 8 2.9z" /></svg>
      </button>
      <button class="icon" title="Help (?)" aria-label="Help" onClick={() => (help.value = true)}>?</button>
    </header>
  );
}

function Search() {
  void refresh.value;
  let matching = -1;
  const text = filter.value;
  const problem = problemOf(text, cluster);
  if (text.trim() && !absent.value) matching = matchCount.value();
  return (
    <div class={`search ${text ? 'on' : ''} ${folded.value ? 'folded' : ''}`}>
      <button class="icon key" aria-label="Filter" aria-expanded={!folded.value} title={`Filter${text && `: ${text}`} (/)`} onClick={() => document.getElementById('filter')?.focus()}>/</button>
      <div class="field" onFocusIn={() => (folded.value = false)} onFocusOut={fold}>
        <input
          id="filter" type="search" value={text} spellcheck={false} autocomplete="off" aria-label="Filter" enterkeyhint="done"
          placeholder="/ filter: web, app=web, ns:, node:, state:" onInput={(e) => (filter.value = e.currentTarget.value)}
          aria-invalid={problem !== null} aria-describedby="filter-problem" onKeyDown={leave}
        />
        {matching >= 0 && !problem && !kind.value && <span class="count muted">{matching.toLocaleString('en')} of {cluster.pods.toLocaleString('en')}</span>}
        <p id="filter-problem" class={problem ? 'problem' : 'visually-hidden'} role="status">
          {problem && <>{problem.words}{problem.meant && <>: did you mean <button class="link mono" onClick={() => mend(problem.fixed)}>{problem.meant}</button>?</>}</>}
        </p>
        <button class="icon clear" aria-label="Clear the filter" title="Clear the filter" onClick={clear}>
          <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path d="M3.4 2 8 6.6 12.6 2 14 3.4 9.4 8l4.6 4.6-1.4 1.4L8 9.4 3.4 14 2 12.6 6.6 8 2 3.4z" /></svg>
        </button>
      </div>
    </div>
  );
}

/** In a narrow window the filter is folded into its key. Unfolded, it covers the top bar. */
const folded = signal(true);

/** An empty filter folds when the focus leaves it. */
function fold({ currentTarget, relatedTarget }: FocusEvent): void {
  if (!filter.value && !(currentTarget as Node).contains(relatedTarget as Node | null)) folded.value = true;
}

/** Enter and Esc leave the filter, see keys.ts. It stays in effect. */
function leave({ key }: KeyboardEvent): void {
  if (key === 'Enter' || key === 'Escape') folded.value = true;
}

function clear(): void {
  filter.value = '';
  folded.value = true;
  document.querySelector<HTMLElement>('.search .key')?.focus();
}

/** Takes a suggestion, and goes on with typing. */
function mend(fixed: string): void {
  filter.value = fixed;
  document.getElementById('filter')?.focus();
}

/** How many Pods match the filter; set by app.tsx, which has the engine. */
export const matchCount = { value: (): number => 0 };

function Legend() {
  void refresh.value;
  if (absent.value) return <nav class="legend" aria-label="Pods by state"><span class="total">{absent.value}</span></nav>;
  // Before the first Pod, a number would be a statement about the cluster.
  if (!cluster.synced && !cluster.pods && !cluster.nodes.size) return <nav class="legend" aria-label="Pods by state" />;
  return (
    <nav class={`legend ${cluster.pods >= 10_000 ? 'many' : ''}`} aria-label="Pods by state">
      {scope.value.pods && !cluster.pods ? <Total /> : phone.value ? <FoldedCounts /> : <><Total />{STATES.map((name) => <StateCount key={name} name={name} />)}</>}
    </nav>
  );
}

function Total() {
  void refresh.value; // a component that reads any signal is not rendered again with its parent
  return <><span class="total">{sizeOf(cluster, scope.value).join(' · ')}</span>{only.value && <span class="total only" title={limits()}>only {only.value}</span>}</>;
}

const countOf = (name: StateName): number => cluster.shownCounts()[State[name]];

function StateCount({ name }: { name: StateName }) {
  void refresh.value; // its props stay the same
  const n = countOf(name);
  const word = `state:${name}`;
  const on = filter.value.split(/\s+/).includes(word);
  return (
    <button class={n ? '' : 'none'} aria-pressed={on} title={`${count(n, 'pod')} ${WORDS[name]}`} onClick={() => (filter.value = on ? filter.value.replace(word, '').trim() : word)}>
      <Shape state={name} /> {n.toLocaleString('en')} <span class="word">{name}</span>
    </button>
  );
}

/** On a phone: the worst state, and how many are ready; pressed, all counts. */
function FoldedCounts() {
  void refresh.value;
  const worst = STATES.find((name) => countOf(name) > 0);
  const shown = STATES.filter((name) => name === 'ready' || name === worst);
  return (
    <>
      <button popovertarget="counts" aria-haspopup="dialog" title="All counts">
        {shown.map((name) => <span key={name}><Shape state={name} /> {countOf(name).toLocaleString('en')}<span class="visually-hidden"> {name}</span></span>)}
      </button>
      <div id="counts" class="pop" popover="auto" role="dialog" aria-label="Pods by state" onClick={(e) => (e.target as HTMLElement).closest('button') && e.currentTarget.hidePopover()}>
        <Total />
        {STATES.map((name) => <StateCount key={name} name={name} />)}
      </div>
    </>
  );
}

function Connection() {
  void refresh.value;
  const { phase, text, code } = status.value;
  const since = lost.value;
  const words = asked.value ? (asked.value === 'needed' ? 'not logged in' : 'login expired') : mode.value ? (mode.value.time > now() + 1000 ? 'the future' : 'the past') : phase === 'live' || code === 404 ? (ended.value ? 'a recording' : 'live') : phase;
  return (
    <div class={`connection ${asked.value ? 'denied' : mode.value ? 'past' : phase.replace(' ', '-')}`} title={text} role="status">
      <i aria-hidden="true" /> {words}{silence.value && ', no contact'}
      {/* Counts without being announced each second. */}
      {since > 0 && phase === 'stale' && <span role="timer" aria-live="off">for {age((Date.now() - since) / 1000)}</span>}
    </div>
  );
}
