// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Drains a Node: what it does with which Pod, its progress, and what it did. */

import { messageOf } from '../app/api';
import { useEffect, useRef, useState } from 'preact/hooks';
import { count } from '../data/quantity';
import { send } from '../write/write';
import { preview, targetOf, undo, type Preview } from './apply';
import { Shown } from './change';
import { drain, podsOf } from './drain';
import { cordonEdits, type FormProps } from './forms';
import { Buttons, Problem, useFirstField } from './frame';
import { isEvicted, outcome, planOf, type Eviction, type NodePod, type Plan } from './plan';
import { done, type Done, type Subject } from './state';

export function Drain({ subject, again, close }: FormProps) {
  const node = subject.object.metadata.name;
  const [plan, setPlan] = useState<Plan | null>(null);
  const [cordon, setCordon] = useState<Preview | null>(null);
  const [problem, setProblem] = useState('');
  const [checks, setChecks] = useState({ alone: false, withData: false });
  const [evictions, setEvictions] = useState<Eviction[] | null>(null);
  const [ended, setEnded] = useState(false);
  const stop = useRef<AbortController | null>(null);
  const cordoned = (subject.object as { spec?: { unschedulable?: boolean } }).spec?.unschedulable === true;
  useEffect(() => {
    const stop = new AbortController();
    const ask = async (): Promise<void> => {
      setPlan(planOf(await podsOf(node, stop.signal)));
      if (!cordoned) setCordon(await preview(subject, cordonEdits(subject), stop.signal));
    };
    ask().catch((error: unknown) => stop.signal.aborted || setProblem(messageOf(error)));
    return () => stop.abort();
  }, [subject]);
  useFirstField(plan !== null);
  // A dialog that is closed drains no further.
  useEffect(() => () => stop.current?.abort(), []);
  const ready = plan !== null && (cordoned || cordon !== null) && (!plan.alone.length || checks.alone) && (!plan.withData.length || checks.withData);
  const run = async ({ evicted }: Plan, signal: AbortSignal): Promise<void> => {
    const edits = cordonEdits(subject);
    const uncordon = cordoned ? undefined : await cordonNode(subject, edits);
    const all = await drain(node, evicted, setEvictions, signal);
    const failed = all.filter(({ state }) => state === 'failed').length;
    done.value = { words: outcome(node, all, signal.aborted), failed: failed > 0, undo: uncordon };
    setEnded(true);
    if (!failed || signal.aborted) close();
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!plan || !ready || stop.current) return;
    stop.current = new AbortController();
    setEvictions([]);
    run(plan, stop.current.signal).catch((error: unknown) => {
      stop.current = null;
      setEvictions(null);
      setProblem(`Nothing was written. ${messageOf(error)}`);
    });
  };
  if (evictions) return <Progress node={node} all={evictions} ended={ended} close={close} stop={() => stop.current?.abort()} />;
  return (
    <form class="body" onSubmit={submit}>
      {!plan && !problem && <p class="muted">Listing the Pods of the Node.</p>}
      {plan && (
        <>
          <p>The Node is cordoned{cordoned && ' already'}, then {count(plan.evicted.length, 'Pod')} {plan.evicted.length === 1 ? 'is' : 'are'} evicted, as PodDisruptionBudgets allow. {remaining(plan)}</p>
          <Pods pods={plan.evicted} />
          {plan.alone.length > 0 && (
            <label class="check"><input type="checkbox" checked={checks.alone} onChange={(event) => setChecks({ ...checks, alone: event.currentTarget.checked })} /> Delete {count(plan.alone.length, 'Pod')} without a controller, which nothing makes again: {names(plan.alone)}</label>
          )}
          {plan.withData.length > 0 && (
            <label class="check"><input type="checkbox" checked={checks.withData} onChange={(event) => setChecks({ ...checks, withData: event.currentTarget.checked })} /> Lose the data in the emptyDir volumes of {count(plan.withData.length, 'Pod')}: {names(plan.withData)}</label>
          )}
        </>
      )}
      {cordon && <Shown preview={cordon} />}
      <Problem words={problem} again={again} />
      <Buttons close={close}>
        <button type="submit" class="button danger" disabled={!ready}>Drain</button>
      </Buttons>
    </form>
  );
}

/** Cordons the Node, and returns the way back. */
async function cordonNode(subject: Subject, edits: ReturnType<typeof cordonEdits>): Promise<NonNullable<Done['undo']>> {
  const { object } = await send(targetOf(subject), edits);
  return { label: 'Uncordon', run: (signal) => undo(subject, edits, object, `Uncordoned ${subject.object.metadata.name}.`, signal) };
}

const remaining = ({ daemons, mirrors }: Plan): string => {
  const parts = [...(daemons.length ? [`${count(daemons.length, 'Pod')} of DaemonSets`] : []), ...(mirrors.length ? [`${count(mirrors.length, 'static Pod')}`] : [])];
  return parts.length ? `${parts.join(' and ')} ${daemons.length + mirrors.length === 1 ? 'remains' : 'remain'}.` : '';
};

/** How many names are listed. */
const maxNames = 8;
const names = (pods: NodePod[]): string => pods.slice(0, maxNames).map(({ metadata: { namespace, name } }) => `${namespace}/${name}`).join(', ') + (pods.length > maxNames ? ` and ${pods.length - maxNames} more` : '');

const Pods = ({ pods }: { pods: NodePod[] }) =>
  pods.length > 0 ? <details><summary>The Pods that are evicted</summary><ul class="mono evictions" tabIndex={0}>{pods.map(({ metadata: { uid, namespace, name } }) => <li key={uid}>{namespace}/{name}</li>)}</ul></details> : null;

const WORDS: Record<Eviction['state'], string> = { waiting: 'waits', asked: 'is asked for', refused: 'refused for now', evicted: 'evicted, ends', gone: 'gone', failed: 'not evicted' };
/** What needs attention comes first. */
const ORDER: Eviction['state'][] = ['failed', 'refused', 'asked', 'evicted', 'waiting', 'gone'];

function Progress({ node, all, ended, close, stop }: { node: string; all: Eviction[]; ended: boolean; close: () => void; stop: () => void }) {
  const evicted = all.filter(isEvicted).length;
  const gone = all.filter(({ state }) => state === 'gone').length;
  return (
    <div class="body">
      <p role="status">{all.length ? `${evicted} of ${all.length} evicted, ${gone} gone` : `Cordoning ${node}`}</p>
      <progress max={all.length || 1} value={gone} aria-label="Pods that are gone" />
      <ul class="evictions" tabIndex={0} aria-label="Pods">
        {[...all].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state)).map(({ pod: { metadata: { uid, namespace, name } }, state, reason }) => (
          <li key={uid} class={state}><span class="mono">{namespace}/{name}</span> <b>{WORDS[state]}</b>{reason && <p class="small">{reason}</p>}</li>
        ))}
      </ul>
      <footer>{ended ? <button type="button" class="button" onClick={close}>Close</button> : <button type="button" class="button" onClick={stop}>Stop</button>}</footer>
    </div>
  );
}
