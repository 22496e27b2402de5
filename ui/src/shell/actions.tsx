// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What the reader may do with an object: the menu, the way back to a version, and the dialogs. */

import { later } from './later';

const actions = () => import('../actions');

export const Actions = later(async () => (await actions()).Actions);
export const CreateAgain = later(async () => (await actions()).CreateAgain);
export const RollBack = later(async () => (await actions()).RollBack);
export const ActionDialogs = later(async () => (await actions()).ActionDialogs);
