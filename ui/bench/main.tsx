// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The page with a synthetic cluster: "?synthetic=5000x30&rate=1000". */

import { trustedWorker } from '../src/app/trusted';
import { start } from '../src/shell/app';
import { made } from './history';
import workerURL from './synthetic?worker&url';

start(trustedWorker(workerURL, location.search), made);
