// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import workerURL from './data/worker?worker&url';
import { trustedWorker } from './app/trusted';
import { start } from './shell/app';

start(trustedWorker(workerURL));
