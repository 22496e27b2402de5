// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { Copy } from './copy';
import { textOf, toYAML } from './yaml';

const managed = signal(false);
const HIDDEN = new Set(['metadata.managedFields']);

const APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** A Secret without its values, which are also in what kubectl applied. Of other objects, the object. */
export function concealed(object: unknown): unknown {
  const { kind, apiVersion, data, metadata } = object as { kind?: string; apiVersion?: string; data?: object; metadata?: { annotations?: Record<string, string> } };
  if (kind !== 'Secret' || apiVersion !== 'v1') return object;
  const dots = (of: object | undefined) => of && Object.fromEntries(Object.keys(of).map((key) => [key, '•••']));
  const annotations = metadata?.annotations?.[APPLIED] ? { ...metadata.annotations, [APPLIED]: '•••' } : metadata?.annotations;
  return { ...(object as object), metadata: { ...metadata, annotations }, ...(data && { data: dots(data) }) };
}

/** An object as YAML. */
export function YAML({ object }: { object: unknown }) {
  const [revealed, reveal] = useState(false);
  const safe = concealed(object);
  const lines = toYAML(revealed ? object : safe, managed.value ? new Set() : HIDDEN);
  return (
    <>
      <div class="row tools">
        <label><input type="checkbox" checked={managed.value} onChange={(e) => (managed.value = e.currentTarget.checked)} /> managedFields</label>
        {safe !== object && <label><input type="checkbox" checked={revealed} onChange={(e) => reveal(e.currentTarget.checked)} /> values</label>}
        <Copy text={() => lines.map(textOf).join('\n')} label="Copy YAML" />
      </div>
      <pre class="yaml" tabIndex={0}>
        {lines.map((line) => <div>{line.map(({ kind, text }) => (kind === 'mark' ? text : <span class={kind}>{text}</span>))}</div>)}
      </pre>
    </>
  );
}
