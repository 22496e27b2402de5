// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { signal } from '@preact/signals';
import { Copy } from './copy';
import { toYAML } from './yaml';

const managed = signal(false);
const HIDDEN = new Set(['metadata.managedFields']);

/** An object as YAML. */
export function YAML({ object }: { object: unknown }) {
  const lines = toYAML(object, managed.value ? new Set() : HIDDEN);
  return (
    <>
      <div class="row tools">
        <label><input type="checkbox" checked={managed.value} onChange={(e) => (managed.value = e.currentTarget.checked)} /> managedFields</label>
        <Copy text={() => lines.map((line) => line.map((piece) => piece.text).join('')).join('\n')} label="Copy YAML" />
      </div>
      <pre class="yaml" tabIndex={0}>
        {lines.map((line) => <div>{line.map(({ kind, text }) => (kind === 'mark' ? text : <span class={kind}>{text}</span>))}</div>)}
      </pre>
    </>
  );
}
