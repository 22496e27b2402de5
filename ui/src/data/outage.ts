// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What the gateway says of an API server that does not answer, for a reader whom it has nothing live to serve. */

import { get } from './access';
import { sentence } from './quantity';

export interface Outage {
  /** Why there is no contact, in a sentence. */
  words: string;
  /** The last contact, in milliseconds since 1970; 0 if this gateway had none. */
  since: number;
}

/** Requests from the index of the history whether the API server answers. Null if it does, and if the gateway does not say. */
export async function askOutage(extension: string, namespace: string, signal: AbortSignal): Promise<Outage | null> {
  try {
    const index = await get(new URL(namespace ? `history?namespace=${namespace}` : 'history', extension), signal);
    const { upstream } = (await index.json()) as { upstream?: { answers: boolean; reason?: string; lastContact?: string } };
    if (!upstream || upstream.answers) return null;
    const { reason = '', lastContact = '' } = upstream;
    return { words: sentence(reason.startsWith('the API server') ? reason : `no answer from the API server: ${reason}`), since: Date.parse(lastContact) || 0 };
  } catch {
    return null; // the error of the list says why nothing is shown
  }
}
