// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The dialog that opens anything by kind, name, namespace or label. */

import { batch } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { getJSON, METADATA } from '../app/api';
import { cluster, filter, kind, mode, opener, scope, selection, selectionOf, view } from '../app/state';
import { useDialog } from '../shell/focus';
import { learn, problem, resources } from './known';
import { collection, type Resource } from './resources';
import { choicesOf, objectNamed, objectsOf, read, type Choice } from './search';

/** How many objects of a kind are searched. */
const maxSearched = 5000;
/** Typing on within this time makes no request, in milliseconds. */
const pause = 120;

const NAMESPACES = { group: '', version: 'v1', name: 'namespaces' };

/** The names of the objects of a resource. */
async function namesOf(resource: Pick<Resource, 'group' | 'version' | 'name'>, at: string, signal: AbortSignal): Promise<[string | null, string][]> {
  const { items } = await getJSON<{ items: { metadata: { namespace?: string; name: string } }[] | null }>(
    collection(resource), at, signal, { accept: METADATA, query: { limit: String(maxSearched) } },
  );
  return (items ?? []).map(({ metadata }) => [metadata.namespace ?? null, metadata.name]);
}

function go(choice: Choice): void {
  batch(() => {
    opener.value = false;
    switch (choice.to) {
      case 'kind':
        view.value = 'table';
        kind.value = choice.resource.id;
        filter.value = choice.filter;
        break;
      case 'object':
        selection.value = selectionOf(choice.path);
        break;
      case 'namespace':
        filter.value = `ns:${choice.name}`;
        break;
      case 'board':
        view.value = 'board';
        kind.value = '';
        filter.value = choice.filter;
        break;
    }
  });
}

export function Opener() {
  const element = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const [found, setFound] = useState<{ id: string; rows: [string | null, string][]; problem: string }>({ id: '', rows: [], problem: '' });
  /** Enter was pressed before the resources were known: the first choice opens once they are. */
  const early = useRef(false);
  const known = resources.value ?? [];
  const wanted = read(text, known);
  const id = wanted.resource?.id ?? '';
  const moment = mode.value?.at ?? '';
  const close = (): void => void (opener.value = false);
  useDialog(element, close);
  useEffect(() => void learn(), []);
  useEffect(() => {
    if (!wanted.resource) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      namesOf(wanted.resource!, moment, stop.signal).then(
        (rows) => setFound({ id, rows, problem: '' }),
        (error: Error) => stop.signal.aborted || setFound({ id, rows: [], problem: error.message }),
      );
    }, pause);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [id, moment]);
  const [namespaces, setNamespaces] = useState<{ names: string[]; problem?: string }>({ names: [] });
  useEffect(() => {
    const stop = new AbortController();
    // A reader who may not list them finds those whose Pods they may read.
    namesOf(NAMESPACES, moment, stop.signal).then(
      (rows) => setNamespaces({ names: rows.map(([, name]) => name) }),
      ({ message }: Error) => stop.signal.aborted || setNamespaces(scope.value.namespaces ? { names: scope.value.namespaces } : { names: namespacesOf(cluster), problem: message }),
    );
    return () => stop.abort();
  }, [moment]);
  const unlisted = found.problem && wanted.resource ? objectNamed(wanted.resource, wanted) : null;
  const objects = id && found.id === id ? (unlisted ? [unlisted] : objectsOf(found.rows, wanted, collection)) : [];
  const asked = resources.value !== null || problem.value !== '';
  // Before the resources are known, the first choice would often be another one.
  const choices = asked ? choicesOf(text, known, cluster, objects, namespaces.names) : [];
  const current = Math.min(at, choices.length - 1);
  const keys = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) setAt(Math.min(choices.length - 1, Math.max(0, current + by)));
    else if (event.key === 'Enter' && choices[current]) go(choices[current]);
    else if (event.key === 'Enter') early.current = !asked;
    else return;
    event.preventDefault();
  };
  useEffect(() => void (early.current && resources.value && choices[0] && go(choices[0])), [asked]);
  useEffect(() => element.current!.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' }), [current, text]);
  return (
    <dialog ref={element} class="opener" aria-label="Open" onClick={(e) => e.target === element.current && close()}>
      <input
        value={text} role="combobox" aria-expanded="true" aria-controls="choices" aria-label="Kind, name, namespace or label" aria-activedescendant={current >= 0 ? `choice-${current}` : undefined}
        placeholder="deployments, deploy web, ns:shop, app=web" spellcheck={false} autocomplete="off"
        onInput={(e) => { setText(e.currentTarget.value); setAt(0); early.current = false; }} onKeyDown={keys}
      />
      {problem.value && <p role="alert">The resources of the cluster are not known: {problem.value}</p>}
      {namespaces.problem && <p role="alert">Not all namespaces are known: {namespaces.problem}</p>}
      {found.id === id && found.problem && <p role="alert">{found.problem}</p>}
      <div id="choices" role="listbox" aria-label="Choices" tabIndex={-1}>
        {choices.map((choice, i) => (
          <div key={keyOf(choice)} id={`choice-${i}`} role="option" aria-selected={i === current} onClick={() => go(choice)} onMouseMove={(e) => (e.movementX || e.movementY) && setAt(i)}><Words choice={choice} /></div>
        ))}
      </div>
      {!choices.length && <p class="muted" role="status">{asked ? (found.id === id && found.problem) || problem.value || namespaces.problem ? 'Nothing that could be read has this name.' : 'Nothing has this name.' : 'reading which resources there are'}</p>}
    </dialog>
  );
}

/** The namespaces of the Pods on the board. */
const namespacesOf = ({ length, strings, namespace }: typeof cluster): string[] => [...new Set(namespace.subarray(0, length))].map((id) => strings[id]).filter(Boolean).sort();

const keyOf = (choice: Choice): string => `${choice.to} ${choice.to === 'kind' ? choice.resource.id : choice.to === 'object' ? choice.path : choice.to === 'namespace' ? choice.name : choice.filter}`;

function Words({ choice }: { choice: Choice }) {
  switch (choice.to) {
    case 'kind':
      return <><span><b>{choice.resource.kind}</b> {choice.filter && <code>{choice.filter}</code>}</span><span class="of muted mono">{choice.resource.id}</span></>;
    case 'object':
      return <><span class="mono">{choice.name}</span><span class="of muted">{choice.kind}{choice.namespace && ` in ${choice.namespace}`}</span></>;
    case 'namespace':
      return <><span>only namespace <b class="mono">{choice.name}</b></span><span class="of muted">filter</span></>;
    case 'board':
      return <><span>Pods that match <code>{choice.filter}</code></span><span class="of muted">board</span></>;
  }
}
