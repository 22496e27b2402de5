// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { signal } from '@preact/signals';

/** When the recording that is served ends, in milliseconds since 1970; 0 for a cluster, which goes on. */
export const ended = signal(0);

/** What time it is: a recording stands still at its end. */
export const now = (): number => ended.value || Date.now();
