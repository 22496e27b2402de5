// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Rolls an object back to a recorded version: its spec, or what it has instead, is replaced. */

import { messageOf } from '../app/api';
import { useEffect, useState } from 'preact/hooks';
import { history, type Change as Version } from '../time/history';
import { full, when } from '../time/words';
import { editsBetween, type Edit } from '../write/patch';
import { Change } from './change';
import { Controlled, type FormProps } from './forms';
import { contentOf } from './object';
import { earlierStates, type Earlier } from './versions';

/** What a version changed, in a line. */
function changed({ summary }: Version): string {
  const [first, ...more] = summary ?? [];
  return first ? ` · ${first}${more.length ? ` and ${more.length} more` : ''}` : '';
}

export function Rollback({ subject, version = '', ...rest }: FormProps) {
  const { path, object } = subject;
  const [states, setStates] = useState<Earlier[] | null>(null);
  const [problem, setProblem] = useState('');
  const [chosen, choose] = useState(version);
  const [replicas, setReplicas] = useState(true);
  useEffect(() => {
    const stop = new AbortController();
    const load = async (): Promise<Earlier[]> => {
      const { items } = await history.versions(path, '', stop.signal, { objects: 'true' });
      const found = earlierStates(items, object);
      if (!version || found.some(({ rv }) => rv === version)) return found;
      // It is older, or it is not the first one of its state.
      const one = await history.version(path, version, stop.signal);
      if (!one?.object || one.resourceVersion !== version) throw new Error(`The version ${version} is not recorded any more.`);
      return [...found, { rv: version, change: one, content: contentOf(one.object), object: one.object }];
    };
    load().then(setStates, (error: unknown) => stop.signal.aborted || setProblem(messageOf(error)));
    return () => stop.abort();
  }, [path, object, version]);
  const state = states?.find(({ rv }) => rv === chosen) ?? (chosen ? undefined : states?.[0]);
  const all: Edit[] | null = state ? editsBetween(contentOf(object), state.content) : null;
  const ofReplicas = all?.find(({ path }) => path.join() === 'spec,replicas');
  const edits = all && (replicas ? all : all.filter((edit) => edit !== ofReplicas));
  const { name } = object.metadata;
  return (
    <Change
      {...rest} subject={subject} press="Roll back" edits={edits} complete={states !== null}
      blocked={problem || (states?.length === 0 ? 'No other version of it is recorded.' : '')}
      words={`Rolled ${name} back to the version of ${state ? when(state.change, full) : ''}.`} undone={`Undone: ${name} is as it was before.`}
    >
      {!states && !problem && <p class="muted">Loading versions.</p>}
      {states && states.length > 0 && (
        <label class="field">Version{' '}
          <select value={state?.rv} onChange={(event) => choose(event.currentTarget.value)}>
            {states.map(({ rv, change }) => <option key={rv} value={rv}>{when(change, full)} · RV {rv}{changed(change)}</option>)}
          </select>
        </label>
      )}
      {ofReplicas && <label class="check"><input type="checkbox" checked={replicas} onChange={(event) => setReplicas(event.currentTarget.checked)} /> Also its replicas: {String(ofReplicas.value)} instead of {String(ofReplicas.old)}</label>}
      {object.kind === 'Deployment' && all?.some(({ path }) => path[1] === 'template') && <p class="note">If there is still a ReplicaSet of that template, the Deployment uses it again.</p>}
      <Controlled subject={subject} />
    </Change>
  );
}
