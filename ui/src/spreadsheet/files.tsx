// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The dialog that keeps the workbook, and opens another one. */

import { useState } from 'preact/hooks';
import { Dialog, useAttempt } from './dialogs';
import type { Sheet } from './sheet';
import { fromConfigMap, fromFile, toConfigMap, toFile, type Workbook } from './stored';

export function Files({ sheet, open, close }: { sheet: Sheet; open: (workbook: Workbook) => void; close: () => void }) {
  const [namespace, setNamespace] = useState('default');
  const [name, setName] = useState('watchkeeper-sheet');
  const [said, setSaid] = useState('');
  const [problem, attempt] = useAttempt();
  const act = (what: () => Promise<string | void>): void => void attempt(async () => setSaid((await what()) ?? ''));
  const show = (workbook: Workbook): void => {
    open(workbook);
    close();
  };
  const download = async (): Promise<void> => {
    const url = URL.createObjectURL(await toFile(sheet.book));
    const link = document.createElement('a');
    link.href = url;
    link.download = 'workbook.xlsx';
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <Dialog title="Files" close={close}>
      <section>
        <h3>.xlsx</h3>
        <p>For Excel and LibreOffice, with formulas. What is changed there is applied by <code>watchkeeper sheet --apply workbook.xlsx</code>, or here after it is opened.</p>
        <button class="primary" onClick={() => act(download)}>Download</button>{' '}
        <label class="file">Open <input type="file" accept=".xlsx" onChange={(e) => { const file = e.currentTarget.files?.[0]; if (file) act(async () => show(await fromFile(file))); }} /></label>
      </section>
      <section>
        <h3>ConfigMap</h3>
        <label>Namespace <input class="mono" value={namespace} spellcheck={false} autocomplete="off" onInput={(e) => setNamespace(e.currentTarget.value)} /></label>
        <label>Name <input class="mono" value={name} spellcheck={false} autocomplete="off" onInput={(e) => setName(e.currentTarget.value)} /></label>
        <button onClick={() => act(async () => { await toConfigMap(sheet.book, namespace, name); return `Kept in ${namespace}/${name}.`; })}>Keep</button>{' '}
        <button onClick={() => act(async () => show(await fromConfigMap(namespace, name)))}>Open it</button>
      </section>
      <section>
        <h3>Address</h3>
        <p>{sheet.tooLong.value ? 'The workbook is too large for it.' : 'The address of this page has the workbook without the values of the cluster: copy it, or keep it as a bookmark.'}</p>
      </section>
      {said && <p role="status">{said}</p>}
      {problem && <p class="failure" role="alert">{problem}</p>}
    </Dialog>
  );
}
