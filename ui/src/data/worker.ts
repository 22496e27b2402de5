// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The page's worker: reads the cluster, live or at a moment of the past, and sends the changes. */

import { useToken } from './access';
import { Live } from './live';
import { Outbox } from './outbox';
import { Past } from './past';
import type { Request } from './protocol';
import { Rows } from './rows';
import { Silence } from './silence';

const scope = self as unknown as { postMessage(m: unknown, t: Transferable[]): void; onmessage: (e: MessageEvent<Request>) => void };
const rows = new Rows();
const outbox = new Outbox(rows, (message, transfer) => scope.postMessage(message, transfer));
let source: Live | Past | null = null;
/** What the source shows. */
let opened: Extract<Request, { kind: 'open' }> | null = null;
/** The contact with the cluster, while moments of the past are shown. */
let silence: Silence | null = null;

scope.onmessage = ({ data }) => {
  if (data.kind === 'applied') outbox.applied(rows.synced);
  else if (data.kind === 'wake') wake();
  else if (data.kind === 'token') {
    useToken(data.token);
    const again = data.fresh || source instanceof Past;
    if (data.fresh) {
      rows.reset();
      source?.close();
      source = null; // the rows have no moment to move from
    }
    if (opened && again) open(opened);
    else wake();
  } else open((opened = data));
};

function wake(): void {
  source?.wake();
  silence?.wake();
}

function open({ root, extension, at, speed }: NonNullable<typeof opened>): void {
  source?.close();
  const changed = (): void => outbox.changed(rows.synced);
  // What a closed source reports is ignored.
  const report: typeof outbox.status = (status) => mine === source && outbox.status(status);
  const see: typeof outbox.scope = (seen) => mine === source && outbox.scope(seen);
  if (at) silence ??= new Silence(root, extension, () => source instanceof Past && source.again());
  else {
    silence?.close();
    silence = null;
  }
  const shown = source instanceof Past ? source.shown : null;
  const mine: Live | Past = at
    ? new Past(root, at, speed, rows, changed, report, silence, extension, see, shown)
    : new Live(root, extension, rows, changed, report, see);
  source = mine;
}
