// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import workerURL from './data/worker?worker&url';
import { configure } from './app/api';
import { trustedWorker } from './app/trusted';
import { start } from './shell/app';

await configure();
start(trustedWorker(workerURL));
