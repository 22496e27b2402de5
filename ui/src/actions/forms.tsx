// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The forms of the actions that change a few values. */

import { useEffect, useState } from 'preact/hooks';
import { getJSON } from '../app/api';
import { placeOf } from '../app/path';
import { count } from '../data/quantity';
import { Change } from './change';
import type { Subject } from './state';

export interface FormProps {
  subject: Subject;
  /** The version to roll back to. */
  version?: string;
  again: () => void;
  close: () => void;
}

interface Workload {
  spec?: { replicas?: number; paused?: boolean; template?: { metadata?: { annotations?: Record<string, string> } } };
}

/** Who controls an object, in words; empty if nobody does. */
export function controllerWords({ object }: Subject): string {
  const owners = (object.metadata.ownerReferences ?? []) as { controller?: boolean; kind: string; name: string }[];
  const owner = owners.find(({ controller }) => controller);
  return owner ? `${owner.kind} ${owner.name}` : '';
}

/** Says that a controller may undo a change. */
export function Controlled({ subject }: { subject: Subject }) {
  const owner = controllerWords(subject);
  return owner ? <p class="note">{owner} controls it, and may undo this.</p> : null;
}

export function Scale({ subject, ...rest }: FormProps) {
  const { name } = subject.object.metadata;
  const old = (subject.object as Workload).spec?.replicas ?? 0;
  const [text, setText] = useState(String(old));
  const value = /^\d{1,6}$/.test(text.trim()) ? Number(text) : null;
  return (
    <Change
      {...rest} subject={subject} press="Scale" edits={value === null ? null : value === old ? [] : [{ path: ['spec', 'replicas'], old, value }]}
      words={`Scaled ${name} from ${old} to ${value}.`} undone={`Undone: ${name} has ${old} again.`}
    >
      <label class="field">Replicas <input type="number" min="0" max="999999" step="1" required value={text} onInput={(event) => setText(event.currentTarget.value)} /> <span class="muted">{old} now</span></label>
      <Autoscaler subject={subject} />
      <Controlled subject={subject} />
    </Change>
  );
}

interface Autoscalers {
  items: { metadata: { name: string }; spec: { minReplicas?: number; maxReplicas: number; scaleTargetRef: { kind: string; name: string } } }[] | null;
}

/** Says that an autoscaler sets the replicas. */
function Autoscaler({ subject: { path, object } }: { subject: Subject }) {
  const [words, setWords] = useState('');
  useEffect(() => {
    const stop = new AbortController();
    getJSON<Autoscalers>(`apis/autoscaling/v2/namespaces/${placeOf(path)!.namespace}/horizontalpodautoscalers`, '', stop.signal).then(
      ({ items }) => {
        const found = items?.find(({ spec: { scaleTargetRef: { kind, name } } }) => kind === object.kind && name === object.metadata.name);
        if (found) setWords(`HorizontalPodAutoscaler ${found.metadata.name} sets the replicas itself, from ${found.spec.minReplicas ?? 1} to ${found.spec.maxReplicas}.`);
      },
      () => undefined, // it is only a hint
    );
    return () => stop.abort();
  }, [path]);
  return words ? <p class="note">{words}</p> : null;
}

/** The annotation by which kubectl rollout restart changes the Pods' template. */
const RESTARTED = 'kubectl.kubernetes.io/restartedAt';

export function Restart({ subject, ...rest }: FormProps) {
  const { object } = subject;
  const { spec } = object as Workload;
  const [time] = useState(() => new Date().toISOString().replace(/\.\d+Z/, 'Z'));
  return (
    <Change
      {...rest} subject={subject} press="Restart"
      blocked={object.kind === 'Deployment' && spec?.paused ? 'The Deployment is paused: it would restart nothing. Set spec.paused to false first.' : ''}
      edits={[{ path: ['spec', 'template', 'metadata', 'annotations', RESTARTED], old: spec?.template?.metadata?.annotations?.[RESTARTED], value: time }]}
      words={`Restarting ${object.metadata.name}.`} undone={`Undone: ${object.metadata.name} has its former template again.`}
    >
      <p>An annotation of the Pods' template makes the {object.kind} replace its Pods step by step, as <code>kubectl rollout restart</code> does{spec?.replicas !== undefined && `: ${count(spec.replicas, 'Pod')}`}.</p>
      <Controlled subject={subject} />
    </Change>
  );
}

const unschedulable = ({ object }: Subject): boolean | undefined => (object as { spec?: { unschedulable?: boolean } }).spec?.unschedulable;

/** The edit that cordons a Node. */
export const cordonEdits = (subject: Subject) => [{ path: ['spec', 'unschedulable'], old: unschedulable(subject), value: true }];

export function Cordon({ subject, ...rest }: FormProps) {
  const { name } = subject.object.metadata;
  return (
    <Change {...rest} subject={subject} press="Cordon" edits={unschedulable(subject) ? [] : cordonEdits(subject)} words={`Cordoned ${name}.`} undone={`Undone: ${name} takes Pods again.`}>
      <p>The scheduler puts no further Pods on the Node. Those that are there remain.</p>
    </Change>
  );
}

export function Uncordon({ subject, ...rest }: FormProps) {
  const { name } = subject.object.metadata;
  const old = unschedulable(subject);
  return (
    <Change {...rest} subject={subject} press="Uncordon" edits={old ? [{ path: ['spec', 'unschedulable'], old, value: undefined }] : []} words={`Uncordoned ${name}.`} undone={`Undone: ${name} is cordoned again.`}>
      <p>The scheduler puts Pods on the Node again.</p>
    </Change>
  );
}
