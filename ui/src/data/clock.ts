// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What time it is on the board, in seconds since 1970: now, or the moment of the past that it shows. */
export const clock = { now: (): number => Date.now() / 1000 };
