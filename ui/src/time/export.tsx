// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Downloads the selected range as a recording. */

import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { apiError, request, messageOf } from '../app/api';
import { parseFilter } from '../app/filter';
import { cluster, filter, marks, range, scope } from '../app/state';
import { bearer } from '../app/token';
import { exportURL } from './history';
import { clock } from './words';

const open = signal(false);

/** Opens or closes the export. Without a selected range it selects that of the marks, or else that of the list. */
export function ExportButton({ from, to }: { from: number; to: number }) {
  const toggle = (): void => {
    open.value = !open.value;
    if (!open.value || range.value) return;
    const [first, last] = [marks.value[0], marks.value.at(-1)];
    range.value = first && last && first < last ? { from: first, to: last } : { from, to };
  };
  return <button class="link" aria-expanded={open.value} aria-controls="export" title="Download a recording of this time" onClick={toggle}>export</button>;
}

/** What a recording of the selected range has, and its download. `named` are namespaces of the list. */
export function Export({ named }: { named: string[] }) {
  const [chosen, choose] = useState<string | null>(null);
  const [pseudonyms, setPseudonyms] = useState(false);
  const [said, say] = useState<{ words: string; refused: boolean } | null>(null);
  const selected = range.value;
  if (!open.value || !selected) return null;
  const namespaces = matchingNamespaces(filter.value, named);
  // Rights to some namespaces are none to an export of all.
  const { namespaces: seen } = scope.value;
  const namespace = chosen ?? (seen ? (namespaces[0] ?? '') : namespaces.length === 1 && /(^|\s)(ns|namespace):/.test(filter.value) ? namespaces[0] : '');
  const url = exportURL(selected.from, selected.to, namespace, pseudonyms);
  const download = (event: MouseEvent): void => {
    event.preventDefault();
    say({ words: 'Asking for the recording.', refused: false });
    void refusal(url).then((words) => {
      say({ words: words || 'The download has begun.', refused: words !== '' });
      if (words) return;
      if (bearer()) void saveLoggedIn(url).then(say);
      else save(url);
    });
  };
  return (
    <section class="export" id="export" aria-label="Export">
      <p>
        Everything recorded from {clock(selected.from)} to {clock(selected.to)}: all versions of the objects in{' '}
        <select aria-label="Namespace" value={namespace} onChange={(e) => choose(e.currentTarget.value)}>
          {!seen && <option value="">all namespaces</option>}
          {namespaces.map((name) => <option key={name} value={name}>{name}</option>)}
        </select>{' '}
        that you may list.
      </p>
      <p class="muted small"><code>watchkeeper open recording.wkr</code> shows it on this page, without the cluster. Read it before you send it to others.</p>
      <label class="small"><input type="checkbox" checked={pseudonyms} onChange={(e) => setPseudonyms(e.currentTarget.checked)} /> replace the names of objects by pseudonyms</label>
      <p><a class="button" href={url} download="recording.wkr" onClick={download}>Download recording.wkr</a></p>
      {said && <p class={said.refused ? 'failure' : 'muted small'} role="status">{said.words}</p>}
    </section>
  );
}

/** The namespaces that match the filter, sorted. */
function matchingNamespaces(text: string, named: string[]): string[] {
  const terms = parseFilter(text).filter(({ kind, value }) => kind === 'ns' && value);
  const all = new Set(named);
  for (let row = 0; row < cluster.length; row++) if (cluster.has(row)) all.add(cluster.strings[cluster.namespace[row]]);
  const found = [...all].filter((name) => name && terms.every(({ value, not }) => name.includes(value) !== not)).sort();
  // "ns:web" is the namespace web, even if there is a namespace web-2.
  const exact = found.filter((name) => terms.some(({ value, not }) => !not && name === value));
  return exact.length ? exact : found;
}

/** Why the gateway refuses an export; empty if it does not. Only the start of its answer is read. */
async function refusal(url: string): Promise<string> {
  const stop = new AbortController();
  try {
    const response = await request(url, { signal: stop.signal });
    return response.ok ? '' : (await apiError(response)).message;
  } catch (error) {
    return messageOf(error);
  } finally {
    stop.abort();
  }
}

/** Downloads as the browser does, without keeping the answer in memory. */
function save(url: string, name = ''): void {
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
}

/** Downloads with the reader's token, which a link cannot send: the browser keeps the answer until it is complete. */
async function saveLoggedIn(url: string): Promise<{ words: string; refused: boolean }> {
  try {
    const response = await request(url);
    if (!response.ok) throw await apiError(response);
    const recording = URL.createObjectURL(await response.blob());
    save(recording, 'recording.wkr');
    setTimeout(() => URL.revokeObjectURL(recording), 60_000);
    return { words: 'The recording is saved.', refused: false };
  } catch (error) {
    return { words: `The download broke off: ${error instanceof Error ? error.message : error}`, refused: true };
  }
}
