// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { watch } from './watched.mjs';

const namespace = new URLSearchParams(location.search).get('namespace');
const own = watch('', namespace);
const worker = new Worker(new URL('worker.mjs', import.meta.url), { type: 'module' });
worker.postMessage({ namespace });

window.look = own.look;
window.lookInWorker = () =>
  new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.postMessage('look');
  });
