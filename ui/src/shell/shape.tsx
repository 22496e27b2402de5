// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { PATHS } from '../board/paths';
import type { StateName } from '../data/state';

/** The shape of a state in its colour. The text next to it names the state. */
export const Shape = ({ state, size = 12 }: { state: StateName; size?: number }) => (
  <svg class={`shape ${state}`} width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
    <path d={PATHS[state]} fill-rule="evenodd" />
  </svg>
);
