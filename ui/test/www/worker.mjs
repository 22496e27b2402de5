// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { watch } from './watched.mjs';

let own;
self.onmessage = ({ data }) => {
  if (data === 'look') self.postMessage(own.look());
  else own = watch('', data.namespace);
};
