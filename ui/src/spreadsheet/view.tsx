// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The spreadsheet: opens the workbook of the address, and shows its tabs. */

import { batch } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { ApiError, getJSON } from '../app/api';
import { session } from '../app/login';
import { filter, kind, mode, sheet as address, view } from '../app/state';
import { parseFilter } from '../app/filter';
import { rowHeight } from '../app/window';
import { NotKnown } from '../time/nearest';
import { learn, problem as unknown, resources } from '../kinds/known';
import { named } from '../kinds/resources';
import { Bar, FormulaBar } from './bar';
import { usualColumns } from './columns';
import { Columns, NewTab } from './dialogs';
import { Files } from './files';
import { Grid } from './grid';
import { Review } from './review';
import { current, Sheet } from './sheet';
import { fromAddress, restore, type Workbook } from './stored';

/** What is opened without a kind. */
const usualKind = 'deployments.apps';
/** Of which login and address the workbook is. */
let openedFor = '';

export function Spreadsheet() {
  const [problem, setProblem] = useState('');
  useEffect(() => void learn(), [session.value.number]);
  const known = resources.value;
  const text = address.value;
  const wanted = text || kind.value || usualKind;
  useEffect(() => {
    const id = `${session.value.number} ${wanted}`;
    if (!known || (current.value && (openedFor === id || (text !== '' && text === current.value.addressed && openedFor.startsWith(`${session.value.number} `))))) return;
    // A workbook in which something was typed is not given up for another kind: that becomes a tab.
    if (current.value && !text && current.value.changes().length + current.value.book.tabs.reduce((sum, tab) => sum + tab.inputs.size, 0) > 0 && openedFor.startsWith(`${session.value.number} `)) {
      openedFor = id;
      openKind(current.value, wanted).catch((error: Error) => setProblem(error.message));
      return;
    }
    openedFor = id;
    setProblem('');
    (async () => open(text ? await fromAddress(text) : null, wanted))().catch((error: Error) => setProblem(error.message));
  }, [known, wanted, session.value.number]);
  useEffect(() => {
    const wake = (): void => void (document.hidden || current.value?.book.wake());
    document.addEventListener('visibilitychange', wake);
    return () => document.removeEventListener('visibilitychange', wake);
  }, []);
  if (unknown.value) return <Empty>The resources of the cluster are not known: {unknown.value} <button class="link" onClick={() => void learn()}>Try again</button></Empty>;
  if (problem) return <Empty>{problem} <button class="link" onClick={() => { setProblem(''); batch(() => { address.value = ''; kind.value = usualKind; }); }}>Open the Deployments</button></Empty>;
  const sheet = current.value;
  if (!sheet?.active) return <Empty>loading</Empty>;
  return <Workbench key={sheet.book.tabs.length === 0 ? '' : openedFor.split(' ')[0]} sheet={sheet} />;
}

const Empty = ({ children }: { children: preact.ComponentChildren }) => <div class="spreadsheet empty" tabIndex={0}><p role="status">{children}</p></div>;

/** Opens a workbook, or the objects of a kind, in place of the open one. */
async function open(workbook: Workbook | null, wanted: string): Promise<void> {
  const sheet = new Sheet();
  try {
    sheet.book.show(mode.peek()?.at ?? '');
    if (workbook) restore(sheet.book, workbook, resources.peek()!);
    else await openKind(sheet, wanted);
    if (sheet.book.tabs.length === 0) throw new Error('The workbook has no tabs.');
  } catch (error) {
    sheet.close();
    throw error;
  }
  current.peek()?.close();
  // Also if the address has just become that of the workbook before, which nobody has opened yet.
  openedFor = `${session.peek().number} ${address.peek() || kind.peek() || usualKind}`;
  current.value = sheet;
  sheet.show(0);
}

/** Opens a tab of a kind, of what the filter of the page selects. */
async function openKind(sheet: Sheet, wanted: string): Promise<void> {
  const resource = named(resources.peek()!, wanted);
  if (!resource) throw new Error(`The cluster has no resource ${wanted} that can be listed.`);
  const terms = parseFilter(filter.peek()).filter((term) => !term.not);
  const part = terms.find((term) => term.kind === 'ns')?.value ?? '';
  const namespace = resource.namespaced && part && (await isNamespace(part)) ? part : '';
  const selector = terms.filter((term) => term.kind === 'label').map((term) => `${term.key}=${term.value}`).join(',');
  const same = sheet.book.tabs.find(({ selected }) => selected?.resource.id === resource.id && selected.namespace === namespace && selected.selector === selector);
  if (same) return sheet.show(same.index);
  sheet.book.add(resource.name, { resource, namespace, selector }, usualColumns(resource.kind));
  sheet.show(sheet.book.tabs.length - 1);
}

/** The filter has parts of the names of namespaces: whether one is a whole name. Who may not read namespaces is taken at their word. */
const isNamespace = (name: string): Promise<boolean> =>
  getJSON(`/api/v1/namespaces/${name}`).then(() => true, (error: unknown) => error instanceof ApiError && error.code === 403);

function Workbench({ sheet }: { sheet: Sheet }) {
  const [dialog, setDialog] = useState<'' | 'column' | 'files' | 'tab'>('');
  const at = mode.value?.at ?? '';
  useEffect(() => sheet.book.show(at), [at, sheet]);
  void sheet.book.version.value;
  const { tabs } = sheet.book;
  const close = (): void => setDialog('');
  const closeSheet = (): void => {
    sheet.close();
    openedFor = '';
    batch(() => {
      current.value = null;
      address.value = '';
      kind.value = '';
      view.value = 'board';
    });
  };
  return (
    <div class="spreadsheet" style={{ '--row': `${rowHeight()}px` }}>
      <Bar sheet={sheet} open={setDialog} close={closeSheet} />
      <FormulaBar sheet={sheet} />
      <div class="sheet-main">
        {sheet.active!.unknown ? <NotKnown kind={sheet.active!.selected!.resource.kind} resource={sheet.active!.selected!.resource.id} why={sheet.active!.unknown} /> : <Grid sheet={sheet} />}
        {sheet.review.value && !mode.value && <Review sheet={sheet} />}
      </div>
      <div class="sheet-tabs">
        <div role="tablist" aria-label="Tabs of the workbook">{tabs.map((tab, i) => (
          <button key={tab.name} role="tab" aria-selected={sheet.tab.value === i} tabIndex={sheet.tab.value === i ? 0 : -1} onClick={() => sheet.show(i)} onKeyDown={(event) => step(sheet, event)}>{tab.name}</button>
        ))}</div>
        <button class="link" aria-label="New tab" onClick={() => setDialog('tab')}>+</button>
        {tabs.length > 1 && <button class="link" onClick={() => { sheet.book.remove(sheet.active!); sheet.show(sheet.tab.value); }}>Remove this tab</button>}
      </div>
      {dialog === 'column' && <Columns sheet={sheet} close={close} />}
      {dialog === 'tab' && <NewTab sheet={sheet} close={close} />}
      {dialog === 'files' && <Files sheet={sheet} close={close} open={(workbook) => void sheet.attempt(() => open(workbook, ''))} />}
    </div>
  );
}

/** Arrow keys move between tabs. */
function step(sheet: Sheet, event: KeyboardEvent): void {
  const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
  if (!by) return;
  event.preventDefault();
  event.stopPropagation();
  sheet.show((sheet.tab.value + by + sheet.book.tabs.length) % sheet.book.tabs.length);
  const tabs = (event.currentTarget as HTMLElement).parentElement!.querySelectorAll<HTMLElement>('[role="tab"]');
  setTimeout(() => tabs[sheet.tab.value]?.focus());
}
