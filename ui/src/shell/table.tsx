// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0
import { beat } from '../app/state';
export const Table = () => (void beat.value, <div class="table" />);
