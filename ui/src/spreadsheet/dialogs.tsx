// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Dialogs: the columns of a tab, and a new tab. */

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { getJSON, METADATA } from '../app/api';
import { resources } from '../kinds/known';
import { collection, named } from '../kinds/resources';
import { useDialog } from '../shell/focus';
import { suggested, usualColumns } from './columns';
import { columnOf } from './path';
import type { Sheet } from './sheet';
import { firstColumn } from './tab';

export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useDialog(element, close);
  return (
    <dialog ref={element} class="sheet-dialog" aria-label={title} onClick={(e) => e.target === element.current && close()} onKeyDown={(e) => e.stopPropagation()}>
      <header><h2>{title}</h2><button class="link" onClick={close}>Done</button></header>
      {children}
    </dialog>
  );
}

/** An action that may fail, and why it did. */
export function useAttempt(): [string, (act: () => Promise<void> | void) => Promise<boolean>] {
  const [problem, setProblem] = useState('');
  return [problem, async (act) => {
    setProblem('');
    try {
      await act();
      return true;
    } catch (error) {
      setProblem((error as Error).message);
      return false;
    }
  }];
}

export function Columns({ sheet, close }: { sheet: Sheet; close: () => void }) {
  void sheet.book.version.value;
  const tab = sheet.active!;
  const [paths, setPaths] = useState<string[]>([]);
  const [text, setText] = useState('');
  const [problem, attempt] = useAttempt();
  useEffect(() => {
    const stop = new AbortController();
    suggested(tab.selected!, stop.signal).then(setPaths, () => undefined); // suggestions are a help only
    return () => stop.abort();
  }, []);
  const add = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (await attempt(() => sheet.book.addColumn(tab, text))) setText('');
  };
  return (
    <Dialog title={`Columns of ${tab.name}`} close={close}>
      <ul>
        {tab.columns.map((column, i) => (
          <li key={column.text}><span class="mono">{column.text}</span> {column.fixed && <span class="muted">read only</span>}
            <button class="link" aria-label={`Remove ${column.text}`} onClick={() => void attempt(() => sheet.book.removeColumn(tab, firstColumn + i))}>Remove</button></li>
        ))}
      </ul>
      <form onSubmit={(event) => void add(event)}>
        <label>Path <input class="mono" list="sheet-paths" value={text} placeholder="metadata.labels.team" spellcheck={false} autocomplete="off" onInput={(e) => setText(e.currentTarget.value)} /></label>
        <datalist id="sheet-paths">{paths.map((path) => <option key={path} value={path} />)}</datalist>
        <button class="primary">Add</button>
      </form>
      <p class="muted">For the value at a moment of the past, add <code> @ 10m</code>, or a time, to the path.</p>
      {problem && <p class="failure" role="alert">{problem}</p>}
    </Dialog>
  );
}

/** More tabs than this are too many to find one in. */
const maxTabs = 50;

export function NewTab({ sheet, close }: { sheet: Sheet; close: () => void }) {
  const [kind, setKind] = useState('deployments.apps');
  const [namespace, setNamespace] = useState('');
  const [selector, setSelector] = useState('');
  const [each, setEach] = useState(false);
  const [problem, attempt] = useAttempt();
  const open = async (event: Event): Promise<void> => {
    event.preventDefault();
    const done = await attempt(async () => {
      const resource = named(resources.value ?? [], kind.trim());
      if (!resource) throw new Error(`The cluster has no resource ${kind} that can be listed.`);
      const columns = usualColumns(resource.kind);
      columns.forEach(columnOf);
      const selected = { resource, selector: selector.trim() };
      if (!each || !resource.namespaced) {
        sheet.book.add(namespace ? `${resource.name} ${namespace}` : resource.name, { ...selected, namespace: resource.namespaced ? namespace.trim() : '' }, columns);
      } else {
        // Only the namespaces that have such objects.
        const { items } = await getJSON<{ items: { metadata: { namespace: string } }[] }>(
          collection(resource), '', undefined, { accept: METADATA, query: selected.selector ? { labelSelector: selected.selector } : {} },
        );
        const namespaces = [...new Set(items.map(({ metadata }) => metadata.namespace))].sort();
        if (namespaces.length === 0) throw new Error(`There are no ${resource.name}.`);
        if (namespaces.length + sheet.book.tabs.length > maxTabs) throw new Error(`There would be ${namespaces.length} tabs more, and at most ${maxTabs} in all: open one tab for all namespaces, or one namespace.`);
        for (const one of namespaces) sheet.book.add(one, { ...selected, namespace: one }, columns);
      }
      sheet.show(sheet.book.tabs.length - 1);
    });
    if (done) close();
  };
  const empty = (): void => {
    sheet.book.add('Sheet', null, []);
    sheet.show(sheet.book.tabs.length - 1);
    close();
  };
  return (
    <Dialog title="New tab" close={close}>
      <form onSubmit={(event) => void open(event)}>
        <label>Kind <input class="mono" list="sheet-kinds" value={kind} spellcheck={false} autocomplete="off" onInput={(e) => setKind(e.currentTarget.value)} /></label>
        <datalist id="sheet-kinds">{(resources.value ?? []).map(({ id }) => <option key={id} value={id} />)}</datalist>
        <label>Namespace <input class="mono" value={namespace} placeholder="all" spellcheck={false} autocomplete="off" disabled={each} onInput={(e) => setNamespace(e.currentTarget.value)} /></label>
        <label>Labels <input class="mono" value={selector} placeholder="app=web,tier in (front, back)" spellcheck={false} autocomplete="off" onInput={(e) => setSelector(e.currentTarget.value)} /></label>
        <label class="check"><input type="checkbox" checked={each} onChange={(e) => setEach(e.currentTarget.checked)} /> A tab for each namespace</label>
        <button class="primary">Open</button>
        <button type="button" onClick={empty}>Empty tab</button>
      </form>
      {problem && <p class="failure" role="alert">{problem}</p>}
    </Dialog>
  );
}
