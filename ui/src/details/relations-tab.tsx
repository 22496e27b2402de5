// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The tab with the relations of an object: the graph, and the tree of its owners and of what it owns. */

import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { selection, tab } from '../app/state';
import { count } from '../data/quantity';
import { useDialog } from '../shell/focus';
import { Shape } from '../shell/shape';
import { Graph } from './graph';
import { usePolled } from './load';
import { plural } from './objects';
import { tree, type Branch, type Owner } from './owned';
import { go, Section, type Props } from './parts';
import { locate } from './places';
import { graphAround, reachOf, surroundings } from './relations';

/** They cost more requests than an overview, so they are read less often, in milliseconds. */
const every = 10_000;

/** The gateway's words about a resource of which it has no history. */
const NOT_RECORDED = / are not recorded: /;

export function Relations({ object, path, at, now }: Props & { path: string }) {
  const { value } = usePolled(path, (signal) => surroundings(object, at, signal), { at, version: object.metadata.resourceVersion, every });
  // The panel is rendered several times per second.
  const around = useMemo(() => value && graphAround(object, value), [value, object.metadata.resourceVersion]);
  if (!value || !around) return <p class="muted">loading</p>;
  const { graph, centre } = around;
  const { left, right } = reachOf(object);
  const alone = graph.vertices.size === 1;
  const { owners, owned, problems } = value;
  const others = problems.filter(({ error }) => !NOT_RECORDED.test(error));
  const unrecorded = problems.filter((problem) => !others.includes(problem)).map(({ resource }) => resource);
  const title = `Relations of ${object.kind} ${object.metadata.name}`;
  const drawing = <Graph graph={graph} centre={centre} left={left} right={right} now={now} title={title} />;
  return (
    <>
      {alone ? <p class="muted">Nothing leads to it or from it.</p> : (
        <>
          <div class="row tools"><span class="muted small">What leads to it, and what it leads to</span><button class="label" onClick={() => (wide.value = true)}>enlarge</button></div>
          {wide.value ? <Wide title={title}>{drawing}</Wide> : drawing}
        </>
      )}
      {(owners.length > 0 || owned.searched) && <Section title="Owners and owned"><Tree path={path} object={object} owners={owners} owned={owned.searched ? tree(object.metadata.uid, owned.items) : null} /></Section>}
      {owned.omitted > 0 && <p class="muted small">{count(owned.omitted, 'more kind')} may have objects that it owns; they were not read.</p>}
      {problems.length > 0 && (
        <section class="problems" aria-label="What could not be read">
          {unrecorded.length > 0 && <p class="muted small">Not recorded, so not shown of the past: {unrecorded.join(', ')}</p>}
          {others.map(({ resource, error }) => <p key={resource} class="failure small"><b>{resource}</b>: {error}</p>)}
        </section>
      )}
    </>
  );
}

/** The graph has the width of the window. It stays while its objects are followed. */
const wide = signal(false);

function Wide({ title, children }: { title: string; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  const close = (): void => void (wide.value = false);
  useDialog(element, close);
  // It stays for another object, but not for another tab.
  useEffect(() => () => void (tab.peek() === 'relations' && selection.peek() ? 0 : close()), []);
  return (
    <dialog class="wide" ref={element} aria-label={title}>
      <header><h2>{title}</h2><button class="label" onClick={close}>close</button></header>
      {children}
    </dialog>
  );
}

/** The owners are outside of each other, the root first; what is owned is inside. */
function Tree({ path, object, owners, owned }: { path: string; object: Props['object']; owners: Owner[]; owned: Branch[] | null }) {
  const [outer, ...inner] = [...owners].reverse();
  if (outer) {
    return (
      <ul class="tree">
        <li>
          {outer.path ? <button onClick={() => go(outer.path)}>{outer.kind} <span class="mono">{outer.name}</span></button> : <span>{outer.kind} <span class="mono">{outer.name}</span></span>}
          {outer.error && <p class="muted small">{outer.error}</p>}
          <Tree path={path} object={object} owners={inner.reverse()} owned={owned} />
        </li>
      </ul>
    );
  }
  return (
    <ul class="tree">
      <li>
        <b>{object.kind} <span class="mono">{locate(path)?.name}</span></b>
        {owned && (owned.length > 0 ? <Branches branches={owned} /> : <p class="muted small">owns nothing that was found</p>)}
      </li>
    </ul>
  );
}

/** How many of a kind are shown at first. */
const maxOfKind = 10;

function Branches({ branches }: { branches: Branch[] }) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const kinds = [...new Set(branches.map(({ thing }) => thing.kind ?? ''))];
  return (
    <ul class="tree">
      {kinds.flatMap((kind) => {
        const all = branches.filter(({ thing }) => thing.kind === kind);
        const shown = open.has(kind) ? all : all.slice(0, maxOfKind);
        return [
          ...shown.map(({ thing, path, words, state, owned }) => (
            <li key={thing.metadata.uid}>
              <button onClick={() => go(path)}>{state && <Shape state={state} />} {kind} <span class="mono">{thing.metadata.name}</span> <span class="muted small">{words}</span></button>
              {owned.length > 0 && <Branches branches={owned} />}
            </li>
          )),
          ...(shown.length < all.length ? [<li key={kind}><button class="link" onClick={() => setOpen(new Set([...open, kind]))}>{count(all.length - shown.length, `more ${kind}`, `more ${plural(kind)}`)}</button></li>] : []),
        ];
      })}
    </ul>
  );
}
