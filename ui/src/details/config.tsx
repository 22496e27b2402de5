// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What is configuration: ConfigMaps, Secrets, ServiceAccounts and Namespaces. */

import { useState } from 'preact/hooks';
import { count } from '../data/quantity';
import { useLists, within } from './load';
import type { Thing } from './objects';
import { asking, Facts, ObjectLink, Section, type Props } from './parts';
import { builtIn, collectionOf } from './places';

export interface ConfigMapObject extends Thing {
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
  immutable?: boolean;
}

/** How much of a value is shown before it is opened. */
const maxShown = 400;
const maxLines = 6;

/** The beginning of a value, and whether there is more. */
export function beginning(text: string): { shown: string; more: boolean } {
  const lines = text.split('\n');
  const shown = lines.slice(0, maxLines).join('\n').slice(0, maxShown);
  return { shown, more: shown.length < text.trimEnd().length };
}

/** The number of bytes of base64, which Secrets and binary data have. */
export const decodedSize = (base64: string): number => Math.max(0, Math.floor((base64.length * 3) / 4) - (/=*$/.exec(base64)?.[0].length ?? 0));

const bytes = (n: number): string => count(n, 'byte');

function Value({ name, text }: { name: string; text: string }) {
  const [open, setOpen] = useState(false);
  const { shown, more } = beginning(text);
  return (
    <li>
      <b class="mono">{name}</b> <span class="muted small">{bytes(new TextEncoder().encode(text).length)}</span>
      {text && <pre class="value">{open ? text : shown}{more && !open && '…'}</pre>}
      {more && <button class="link small" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? `less of ${name}` : `all of ${name}`}</button>}
    </li>
  );
}

export function ConfigMap({ object: { data = {}, binaryData = {}, immutable } }: Props<ConfigMapObject>) {
  const n = Object.keys(data).length + Object.keys(binaryData).length;
  return (
    <Section title={`${count(n, 'key')}${immutable ? ', immutable' : ''}`}>
      <ul class="sets" aria-label="Keys">
        {Object.entries(data).map(([name, text]) => <Value key={name} name={name} text={text} />)}
        {Object.entries(binaryData).map(([name, value]) => <li key={name}><b class="mono">{name}</b> <span class="muted small">{bytes(decodedSize(value))}, binary</span></li>)}
      </ul>
    </Section>
  );
}

export interface SecretObject extends Thing {
  type?: string;
  data?: Record<string, string>;
  immutable?: boolean;
}

/** Names and sizes only: values are shown nowhere but in the YAML, which the reader opens on purpose. */
export function Secret({ object: { type, data = {}, immutable } }: Props<SecretObject>) {
  return (
    <>
      <Facts facts={[['Type', type], ['Immutable', immutable && 'yes']]} />
      <Section title={count(Object.keys(data).length, 'key')}>
        <ul class="sets" aria-label="Keys">
          {Object.entries(data).map(([name, value]) => <li key={name}><b class="mono">{name}</b> <span class="muted small">{bytes(decodedSize(value))}</span></li>)}
        </ul>
      </Section>
    </>
  );
}

export interface ServiceAccountObject extends Thing {
  secrets?: { name?: string }[];
  imagePullSecrets?: { name?: string }[];
  automountServiceAccountToken?: boolean;
}

export function ServiceAccount({ object: { metadata, secrets = [], imagePullSecrets = [], automountServiceAccountToken } }: Props<ServiceAccountObject>) {
  const links = (all: { name?: string }[]) => all.length > 0 && (
    <ul class="plain">{all.map(({ name = '' }) => <li key={name}><ObjectLink path={`${collectionOf(builtIn('Secret'), metadata.namespace)}/${name}`} kind="Secret">{name}</ObjectLink></li>)}</ul>
  );
  return <Facts facts={[['Secrets', links(secrets)], ['Pulls with', links(imagePullSecrets)], ['Token', automountServiceAccountToken === false ? 'is not mounted' : 'is mounted into Pods']]} />;
}

const COUNTED = ['Pod', 'Deployment.apps', 'StatefulSet.apps', 'DaemonSet.apps', 'Job.batch', 'Service', 'ConfigMap', 'PersistentVolumeClaim'];

/** How much there is in a Namespace. */
export function Namespace(props: Props) {
  const { metadata, status } = props.object as Thing & { status?: { phase?: string } };
  const lists = useLists(Object.fromEntries(COUNTED.map((id) => [id, within(builtIn(id), metadata.name, { fields: 'metadata.creationTimestamp' })])), { ...asking(props), every: 30_000 });
  return (
    <>
      <Facts facts={[['Phase', status?.phase]]} />
      <Section title="Objects">
        <Facts facts={COUNTED.map((id) => {
          const { items = [], error = '', more = false } = lists[id] ?? {};
          const { name } = builtIn(id);
          return [name === 'persistentvolumeclaims' ? 'claims' : name, lists[id] && (error ? <span class="muted">not known: {error}</span> : `${items.length.toLocaleString('en')}${more ? ' or more' : ''}`)];
        })} />
      </Section>
    </>
  );
}
