// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

export const clock = {
  /** The time that the board shows, in seconds since 1970: now, the last contact with the cluster, or a moment of the past. */
  now: (): number => Date.now() / 1000,
  /** When what is received was true at the latest: now, also if the board shows the last contact until everything is received, or a moment of the past. */
  received: (): number => clock.now(),
};
