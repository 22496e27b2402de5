// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The side panel with the details of the selected object. */

import { useEffect, useRef } from 'preact/hooks';
import { absent, lost } from '../app/contact';
import { refresh, changes, cluster, mode, pathOf, selection, tab, written, type Selection } from '../app/state';
import { stateName } from '../board/palette';
import { clock } from '../data/clock';
import type { Pod } from '../data/state';
import type { Thing } from '../details/objects';
import { Relations } from '../details/relations-tab';
import { Actions, CreateAgain } from '../shell/actions';
import { Shape } from '../shell/shape';
import { when, zoned } from '../time/words';
import type { Stored } from '../write/write';
import { Copy } from './copy';
import { gone, useLast } from './last';
import { deletionOf } from './lifetime';
import { Logs } from './logs';
import { NodeOverview, type NodeObject } from './node';
import { momentOf, ObjectOverview, type AnyObject } from './object';
import { Owners } from './owners';
import { PodOverview } from './pod';
import { useObject } from './resource';
import { StoryTab } from './story-tab';
import { Versions } from './versions';
import { YAML } from './yaml-tab';

export function Panel() {
  const sel = selection.value;
  return sel && <Selected key={pathOf(sel)} sel={sel} />;
}

/** Objects that are not on the board are requested again this often, in seconds. */
const pollInterval = 5;

function Selected({ sel }: { sel: NonNullable<Selection> }) {
  void refresh.value;
  const element = useRef<HTMLElement>(null);
  const isPod = sel.kind === 'pod';
  const path = pathOf(sel);
  const row = isPod ? cluster.rowOf(sel.namespace, sel.name) : -1;
  const today = clock.now();
  const moment = mode.value?.at ?? '';
  // Loaded again when contact is back.
  const version = lost.value ? -lost.value : isPod ? (row < 0 ? -1 : cluster.changed[row]) : sel.kind === 'node' ? cluster.nodes.get(sel.name)?.row : moment ? 0 : `${Math.floor(today / pollInterval)} ${written.value}`;
  const { value: found, error: refused, missing, gap, outdated } = useObject<Pod & NodeObject & AnyObject>(path, moment, version);
  // Live, the board may have it while its answer is on the way.
  // In a time that was not observed, the history tells at its end whether it was deleted.
  const last = useLast<Pod & NodeObject & AnyObject>(path, gap || moment, gap !== '' || (missing && (row < 0 || moment !== '')));
  // Without contact, the history has the last known state.
  const lastContact = lost.value ? new Date(lost.value).toISOString() : '';
  const known = useObject<Pod & NodeObject & AnyObject>(lastContact && refused && !found ? path : '', lastContact, '');
  const value = last?.was?.object ?? found ?? known.value;
  const at = known.value ? lastContact : moment;
  const error = lastContact && value ? '' : refused;
  // Of a deleted object, everything is shown as of its deletion, or when it was last observed before.
  const deleted = last?.was ? deletionOf(last.was.deletion) : null;
  const now = deleted?.notBefore ?? today;
  const isEvent = /\/events\/[^/]+$/.test(path); // its story is that of what it is about
  const tabs = ['overview', ...(isEvent ? [] : ['story', 'relations']), 'yaml', ...(isPod ? ['logs'] : []), 'versions'];
  const shown = tabs.includes(tab.value) ? tab.value : 'overview';
  useEffect(() => {
    // scrollIntoView would also make the next Tab of a page without a focus begin there.
    const chosen = element.current?.querySelector<HTMLElement>('[aria-selected="true"]');
    const [at, all] = [chosen?.getBoundingClientRect(), chosen?.parentElement!.getBoundingClientRect()];
    if (at && all) chosen!.parentElement!.scrollLeft += Math.min(0, at.left - all.left) + Math.max(0, at.right - all.right);
  }, [shown]);
  return (
    <aside class={`side panel ${lost.value ? 'lost' : ''}`} ref={element} aria-label={`${isPod ? 'Pod' : sel.kind === 'node' ? 'Node' : (value?.kind ?? '')} ${sel.name}`}>
      <header>
        {changes.value && (
          <button class="quiet" aria-label="Back to the list of changes" title="Back to the list of changes (Esc)" onClick={() => (selection.value = null)}>
            <svg width="14" height="14" viewBox="0 0 16 16" aria-hidden="true"><path d="M10.6 2 12 3.4 7.4 8l4.6 4.6-1.4 1.4L4.6 8z" /></svg>
          </button>
        )}
        {row >= 0 && !absent.value && <Shape state={stateName(cluster.shown(row))} size={16} />}
        <h2 class="mono">{sel.kind === 'object' && value?.kind && <span class="muted">{value.kind} </span>}{sel.name}</h2>
        <Copy text={() => sel.name} label="Copy the name" />
        {found && !missing && !last?.was && <Actions path={path} object={found} />}
        <button class="quiet" aria-label="Close" title="Close (Esc)" onClick={() => (selection.value = null)}>
          <svg width="14" height="14" viewBox="0 0 16 16" aria-hidden="true"><path d="M3.4 2 8 6.6 12.6 2 14 3.4 9.4 8l4.6 4.6-1.4 1.4L8 9.4 3.4 14 2 12.6 6.6 8 2 3.4z" /></svg>
        </button>
      </header>
      {value && sel.kind !== 'node' && <Owners metadata={value.metadata} at={at} />}
      <div class="tabs" role="tablist" onKeyDown={(e) => step(e, tabs, shown)}>
        {tabs.map((name) => (
          <button key={name} role="tab" id={`tab-${name}`} aria-selected={name === shown} aria-controls="tab-panel" tabIndex={name === shown ? 0 : -1} onClick={() => (tab.value = name)}>
            {name === 'yaml' ? 'YAML' : name[0].toUpperCase() + name.slice(1)}
          </button>
        ))}
      </div>
      <div class={`content ${outdated ? 'outdated' : ''}`} id="tab-panel" role="tabpanel" aria-labelledby={`tab-${shown}`} aria-busy={outdated}>
        {lost.value > 0 && <p class="unknown-since"><Shape state="unknown" size={14} /> <b>Unknown since {zoned(lost.value)}.</b> This is the last known state.</p>}
        {last?.was && <p class="was-deleted"><Shape state="terminating" size={14} /> <b>Deleted at {when(last.was.deletion, zoned)}.</b> This is its last recorded state. <CreateAgain path={path} object={last.was.object as Stored} /></p>}
        {error && !last?.was && <p class="failure">{missing && (row < 0 || moment) ? gone(last, value !== null, moment !== '') : error}</p>}
        {!value && !error && shown !== 'versions' && shown !== 'story' && <p class="muted">loading</p>}
        {shown === 'story' && <StoryTab path={path} version={sel.kind === 'object' ? `${lost.value} ${value?.metadata.resourceVersion}` : version} deleted={1000 * (deleted?.at ?? 0)} />}
        {shown === 'versions' && <Versions path={path} version={version} folding={sel.kind === 'object'} deleted={deleted !== null} />}
        {value && shown === 'overview' && (isPod ? <PodOverview pod={value} at={at} now={now} deleted={deleted} /> : sel.kind === 'node' ? <NodeOverview node={value} at={at} now={now} deleted={deleted} /> : <ObjectOverview object={value} path={path} at={at} now={now} deleted={deleted} />)}
        {value && shown === 'relations' && <Relations path={path} object={value as Thing} at={momentOf(at, deleted)} now={now} />}
        {value && shown === 'yaml' && <YAML object={value} />}
        {value && shown === 'logs' && (at || deleted ? <p class="muted">Logs are not recorded: there are no logs of {deleted ? 'deleted Pods' : mode.value ? 'the past' : 'a cluster without contact'}.</p> : <Logs pod={value} />)}
      </div>
    </aside>
  );
}

/** Arrow keys move between tabs, as the ARIA pattern for tabs requires. */
function step(event: KeyboardEvent, tabs: string[], shown: string): void {
  const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
  if (!by) return;
  event.preventDefault();
  event.stopPropagation();
  tab.value = tabs[(tabs.indexOf(shown) + by + tabs.length) % tabs.length];
  document.getElementById(`tab-${tab.value}`)?.focus();
}
