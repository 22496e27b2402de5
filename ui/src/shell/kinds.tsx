// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The table of any resource, and the dialog that opens it. */

import { later } from './later';

export const Kinds = later(async () => (await import('../kinds')).Kinds, (words) => <div class="table kinds empty" tabIndex={0}><p role="status">{words}</p></div>);
export const Opener = later(async () => (await import('../kinds')).Opener);
export const Spreadsheet = later(async () => (await import('../spreadsheet')).Spreadsheet, (words) => <div class="spreadsheet empty" tabIndex={0}><p role="status">{words}</p></div>);
/** Buttons for the nearest known moments. */
export const Nearest = later(async () => (await import('../kinds')).Nearest);
