// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Whether what the page shows as live is live, or the last known state of a cluster that it has no contact with. */

import { computed, effect, signal } from '@preact/signals';
import type { Phase, Status } from '../data/protocol';
import { ended, now } from './now';
import { mode, status } from './state';

export interface Contact {
  phase: Phase;
  /** When the state of the cluster was last known, in milliseconds since 1970; 0 if it never was. */
  last: number;
  /** Since when it is unknown; 0 while it is known, and before the first contact. */
  lost: number;
}

/** The contact after a report of the worker at a time. */
export function after(before: Contact, { phase, text, since, code }: Status, now: number): Contact {
  const live = phase === 'live';
  const last = phase === 'stale' && since > 0 ? since : live || before.phase === 'live' ? now : before.last;
  switch (phase) {
    case 'stale':
      return { phase, last, lost: last || now };
    case 'connecting':
      // With a text, a request has failed; without one, it was only just sent.
      return { phase, last, lost: before.lost || (text ? last || since : 0) };
    case 'denied':
      // Without credentials that are accepted, the board shows what was known before.
      return { phase, last, lost: code === 401 ? before.lost || last : 0 };
    case 'catching up':
      // The list has begun, and the board still shows what was known before.
      return { phase, last, lost: before.lost };
    default:
      return { phase, last, lost: 0 };
  }
}

const contact = signal<Contact>({ phase: 'connecting', last: 0, lost: 0 });
effect(() => {
  contact.value = after(contact.peek(), status.value, Date.now());
});

/** Since when the live state is unknown, in milliseconds since 1970; 0 while it is known. A moment of the past and a recording do not change. */
export const lost = computed(() => (mode.value || ended.value ? 0 : contact.value.lost));

/** Why nothing is known of a moment of the past that could not be loaded, in words; empty if it is shown. */
export function absence({ phase, code }: Status, past: boolean, future = false): string {
  if (!past || phase !== 'failed') return '';
  if (future) return 'this moment is in the future';
  return code === 410 ? 'nothing is recorded at this moment' : code ? 'this moment is not available' : 'the gateway does not answer';
}

/** The same for the shown moment. The data is still that of another one: while this is not empty, none of it may be shown. */
export const absent = computed(() => absence(status.value, mode.value !== null, mode.value !== null && mode.value.time > now()));

/** Why there is no contact with the cluster while a moment of the past is shown, in words; empty with contact. */
export const silence = computed(() => (mode.value && status.value.phase === 'past' ? status.value.text : ''));

/** The board shows nothing, or another moment than the page says, and there is no contact to correct it. */
export const misplaced = computed(() => lost.value > 0 && (contact.value.phase === 'connecting' || status.value.code === 503));
