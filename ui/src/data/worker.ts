// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The worker of the page. */

import { Outbox } from './outbox';
import type { Request } from './protocol';
import { Rows } from './rows';

const scope = self as unknown as { postMessage(m: unknown, t: Transferable[]): void; onmessage: (e: MessageEvent<Request>) => void };
const rows = new Rows();
const outbox = new Outbox(rows, (message, transfer) => scope.postMessage(message, transfer));
scope.onmessage = ({ data }) => {
  if (data.kind === 'applied') outbox.applied(true);
};
