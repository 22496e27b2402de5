// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The state of a Pod in words: of one that fails, since when and why. */

import { useEffect, useState } from 'preact/hooks';
import { exactly, loadFailing, type Failing } from '../app/failing';
import { stateName } from '../board/palette';
import { ends, endWords, type Termination } from '../data/crash';
import { age, count } from '../data/quantity';
import { seconds, State, stateAt, type Described, type Pod } from '../data/state';
import { Shape } from '../shell/shape';
import { WORDS } from '../shell/words';
import { recorded } from '../time/playback';
import { clock, when } from '../time/words';

interface Props {
  pod: Pod;
  described: Described;
  at: string;
  now: number;
  /** Since when its Node is NotReady, in seconds since 1970; 0 if it is ready. */
  lostNode: number;
}

/** The state as the board shows it: what failed or succeeded is known, although the Node is lost. */
export function shownState(described: Described, now: number, lostNode: number): State {
  const state = stateAt(described, now);
  return lostNode && state !== State.failing && state !== State.succeeded ? State.unknown : state;
}

export function PodState({ pod, described, at, now, lostNode }: Props) {
  const is = shownState(described, now, lostNode);
  const state = stateName(is);
  const fails = is === State.failing;
  const failing = useFailing(pod, at, (fails || is === State.terminating) && recorded.value);
  const since = failing?.failing ? seconds(failing.since) : seconds(failing?.finding?.since) || described.since;
  if (is === State.unknown && lostNode) {
    return (
      <section class="state">
        <p class="words unknown"><Shape state="unknown" size={16} /> <b>Unknown</b> for {age(now - lostNode)}: its Node is NotReady</p>
        <p class="muted">It was {described.text} then, {described.ready} of {count(described.containers, 'container')} ready.</p>
      </section>
    );
  }
  return (
    <section class="state">
      <p class={`words ${state}`}><Shape state={state} size={16} /> <b>{described.text}</b>{fails ? ', failing' : ''} for {failing?.failing && !exactly(failing) ? 'at least ' : ''}{age(now - since)}</p>
      {fails && failing?.failing
        ? <p class="muted">{!failing.sinceKnown ? `Before ${clock(since * 1000)}, when the recording starts` : `Since ${when({ time: failing.since!, notBefore: failing.notBefore })}`}{described.restarts > 0 && ` · ${count(described.restarts, 'restart')}`}</p>
        : <p class="muted">{is === described.state ? WORDS[state] : `running again, ${described.ready} of ${count(described.containers, 'container')} ready`}</p>}
      {fails && <Ends pod={pod} failing={failing} now={now} />}
      {state !== 'ready' && state !== 'succeeded' && messagesOf(pod).map((message) => <p key={message}>{message}</p>)}
    </section>
  );
}

/** Why the containers wait, or else why the Pod is not ready, each once. */
export function messagesOf({ status = {} }: Pod): string[] {
  const waiting = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].map((c) => c.state?.waiting?.message).filter((message) => message !== undefined);
  const other = status.message ?? status.conditions?.find((c) => c.status === 'False' && c.message)?.message;
  return waiting.length ? [...new Set(waiting)] : other ? [other] : [];
}

/** How each container ended that crashed, from the Pod, or else from the history. One that only waits has not ended. */
export function endsOf(pod: Pod, failing: Failing | null): (Termination & { name: string })[] {
  const own = ends(pod).map(({ container, end }) => ({ ...end, name: container.name ?? '' }));
  return own.length ? own : (failing?.containers ?? []).filter((end) => end.exitCode !== undefined || end.signal);
}

function Ends({ pod, failing, now }: { pod: Pod; failing: Failing | null; now: number }) {
  const all = endsOf(pod, failing);
  if (!all.length) return null;
  return (
    <ul class="ends" aria-label="How the containers ended">
      {all.map((end) => (
        <li key={end.name}>
          <b class="mono">{end.name}</b> <span>{endWords(end)}</span>{end.finishedAt && <time class="muted"> {age(now - seconds(end.finishedAt))} ago</time>}
          {end.message && <pre>{end.message.trimEnd()}</pre>}
        </li>
      ))}
    </ul>
  );
}

/** Loaded for a Pod that fails or terminates, and again with each restart. Null before that, and without a history. */
function useFailing({ metadata, status = {} }: Pod, at: string, on: boolean): Failing | null {
  const [found, set] = useState<Failing | null>(null);
  const restarts = (status.containerStatuses ?? []).reduce((n, c) => n + (c.restartCount ?? 0), 0);
  useEffect(() => {
    if (!on) return set(null);
    const stop = new AbortController();
    loadFailing(`/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`, at, stop.signal).then(set, () => stop.signal.aborted || set(null));
    return () => stop.abort();
  }, [metadata.uid, metadata.deletionTimestamp, at, on, restarts]);
  return on ? found : null;
}
