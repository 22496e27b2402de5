// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The shapes of the states as SVG paths in a square of 16, for the legend, lists and cards. */

import type { StateName } from '../data/state';

const BOX = 'M4.5 2h7A2.5 2.5 0 0 1 14 4.5v7a2.5 2.5 0 0 1-2.5 2.5h-7A2.5 2.5 0 0 1 2 11.5v-7A2.5 2.5 0 0 1 4.5 2z';

/** Fill them with the even-odd rule. */
export const PATHS: Record<StateName, string> = {
  ready: BOX,
  unready: `${BOX}M5.4 3.8H11.2a1 1 0 0 1 1 1V10.6z`,
  pending: 'M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8zm0 2a4.2 4.2 0 1 0 0 8.4A4.2 4.2 0 0 0 8 3.8z',
  failing: 'M8 1.5c.4 0 .8.2 1 .6l5.8 10.6c.4.8-.1 1.8-1 1.8H2.2c-.9 0-1.4-1-1-1.8L7 2.1c.2-.4.6-.6 1-.6z',
  succeeded: 'M8 2.6a5.4 5.4 0 1 1 0 10.8A5.4 5.4 0 0 1 8 2.6z',
  terminating: 'M3.6 2.2 8 6.6l4.4-4.4 1.4 1.4L9.4 8l4.4 4.4-1.4 1.4L8 9.4l-4.4 4.4-1.4-1.4L6.6 8 2.2 3.6z',
  unknown: 'M2 5V4.5A2.5 2.5 0 0 1 4.5 2H5zM2 10.5V7.2L7.2 2h3.3zM2.6 13.1 13.1 2.6c.6.5.9 1.1.9 1.9v.9L5.4 14h-.9c-.8 0-1.4-.3-1.9-.9zM7.6 14 14 7.6v3.3L10.9 14z',
};
