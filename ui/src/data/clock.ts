// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The time that the board shows, in seconds since 1970: now, the last contact with the cluster, or a moment of the past. */
export const clock = { now: (): number => Date.now() / 1000 };
