// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { signal } from '@preact/signals';

/** When the served recording ends, in milliseconds since 1970; 0 for a live cluster. */
export const ended = signal(0);

/** What the served recording is limited to, such as `namespace shop`; empty if that is nothing. */
export const only = signal('');

/** Says what the served recording is limited to. */
export const limits = (): string => only.value && `This recording has only ${only.value}.`;

/** The current time, or the end of the served recording. */
export const now = (): number => ended.value || Date.now();
