// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The page's worker: reads the cluster, live or at a moment of the past, and sends the changes. */

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
/** The contact with the cluster, while moments of the past are shown. */
let silence: Silence | null = null;

scope.onmessage = ({ data }) => {
  if (data.kind === 'applied') outbox.applied(rows.synced);
  else if (data.kind === 'wake') {
    source?.wake();
    silence?.wake();
  }
  else {
    source?.close();
    const changed = (): void => outbox.changed(rows.synced);
    // The status of a closed source is ignored.
    const report: typeof outbox.status = (status) => mine === source && outbox.status(status);
    if (data.at) silence ??= new Silence(data.root, data.extension, () => source instanceof Past && source.again());
    else {
      silence?.close();
      silence = null;
    }
    const mine: Live | Past = data.at
      ? new Past(data.root, data.at, data.speed, rows, changed, report, silence)
      : new Live(data.root, data.extension, rows, changed, report);
    source = mine;
  }
};
