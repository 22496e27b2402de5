// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0
import { selection } from '../app/state';
export const Panel = () => <aside class="side panel">{JSON.stringify(selection.value)}</aside>;
