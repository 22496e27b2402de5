// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// node compress.mjs: writes compressed variants of the built files, which the
// gateway serves, and prints the size of the page.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const dist = new URL('dist/', import.meta.url).pathname;
const variants = {
  '.br': (body) => brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: body.length } }),
  '.gz': (body) => gzipSync(body, { level: 9 }),
};

const index = readFileSync(join(dist, 'index.html'), 'utf8'); // has the chunks that are loaded at first
const total = { '': 0, '.br': 0, '.gz': 0 };
let later = 0; // of total['.gz']: what is not loaded at first
for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue;
  const name = join(entry.parentPath ?? entry.path, entry.name);
  const body = readFileSync(name);
  total[''] += body.length;
  for (const [extension, compress] of Object.entries(variants)) {
    const small = compress(body);
    const worth = small.length < 0.95 * body.length;
    total[extension] += worth ? small.length : body.length;
    if (extension === '.gz' && entry.name.startsWith('later-') && !index.includes(entry.name)) later += small.length;
    if (worth) writeFileSync(name + extension, small);
  }
}
// Go's embed needs a file in the folder even if nothing was built.
writeFileSync(join(dist, '.gitkeep'), '');
console.log(`the page is ${total['']} bytes: ${total['.gz']} in gzip, of which ${total['.gz'] - later} are loaded at first, ${total['.br']} in brotli`);
