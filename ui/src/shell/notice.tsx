// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { absent, lost, misplaced, silence } from '../app/contact';
import { ended, limits } from '../app/now';
import { asked } from '../app/login';
import { refresh, cluster, mode, scope, status } from '../app/state';
import { sentence } from '../data/quantity';
import { goTo, recorded } from '../time/playback';
import { zoned } from '../time/words';
import { Nearest } from './kinds';
import { later } from './later';
import { Seen } from './seen';
import { lacking, sizeOf } from './words';

const Nobody = later(async () => (await import('./nobody')).Nobody);

/** Says in words why the board is empty or out of date. */
export function Notice() {
  void refresh.value;
  const { phase, text, code } = status.value;
  const some = cluster.pods + cluster.nodes.size > 0;
  if (absent.value) {
    // The board has another moment: cover it, so that nobody mistakes it for this one.
    return (
      <div class="notice veil absent" role="alert">
        <h1>{absent.value[0].toUpperCase()}{absent.value.slice(1)}</h1>
        <p>{text && sentence(text)} {limits()}</p>
        <Nearest />
        <p class="muted">Esc goes back to {ended.value ? 'the end' : 'now'}.</p>
      </div>
    );
  }
  // The login says why nothing moves.
  if (asked.value) return null;
  if (phase === 'denied' && scope.value.namespaces?.length === 0) return <Nobody />;
  // What is recorded remains shown.
  if (silence.value) return <p class="chip" role="alert"><b>No contact{status.value.since > 0 && ` since ${zoned(status.value.since)}`}.</b> {silence.value} The past is shown as far as it is recorded.</p>;
  if (misplaced.value && (some || code === 503)) {
    return (
      <div class="notice veil" role="alert">
        <h1>No contact since {zoned(lost.value)}</h1>
        <p>{text}</p>
        {phase === 'stale' && recorded.value && <p class="nearest"><button class="button" onClick={() => goTo(lost.value)}>Show the last recorded state</button></p>}
        <p class="muted">The page retries, and shows the board once it is connected.</p>
      </div>
    );
  }
  if (some && cluster.synced) {
    // The board is out of date or incomplete: say since when.
    if (phase === 'denied' || phase === 'failed') return <p class="chip" role="alert">{text}</p>;
    if (phase === 'stale') return <p class="chip" role="alert">{lost.value > 0 && <><b>Stale since {zoned(lost.value)}.</b>{' '}</>}{text}{lost.value > 0 && ' The board shows what was known then.'}{lacking(scope.value) && ` It is not everything: ${lacking(scope.value)}`}</p>;
    if (phase === 'catching up') return <p class="chip calm" role="status">Catching up: loading the changes since then.</p>;
    return <Seen />;
  }
  if (phase === 'denied') {
    return (
      <div class="notice">
        <h1>{code === 404 ? 'No Pods are recorded' : 'Not allowed'}</h1>
        <p>{text || 'You may not list Pods.'} {limits()}</p>
        {code === 404 ? <p class="muted"><b>Kinds…</b> (<kbd>:</kbd>) shows what is recorded.</p> : <p class="muted">The board reads Pods and Nodes in all namespaces: it needs <code>list</code> and <code>watch</code> on both.</p>}
      </div>
    );
  }
  if (some) return <p class="chip calm" role="status">{phase === 'connecting' ? 'Connecting' : 'Catching up'}: {sizeOf(cluster, scope.value).join(' and ')} so far.{text && ` ${text}`}</p>;
  if (cluster.synced && (scope.value.namespaces || scope.value.nodes)) {
    return (
      <>
        <Seen />
        <div class="notice">
          <h1>No Pods</h1>
          <p>{mode.value ? 'At this moment there were no Pods that you may read.' : 'There are no Pods yet that you may read. They appear here when they are created.'}</p>
        </div>
      </>
    );
  }
  if (cluster.synced) {
    return (
      <>
        <Seen />
        <div class="notice">
          <h1>{mode.value ? 'The cluster was empty' : 'An empty cluster'}</h1>
          <p>{mode.value ? 'At this moment the cluster had no Nodes and no Pods.' : 'No Nodes and no Pods yet. They appear here when they are created.'}</p>
        </div>
      </>
    );
  }
  if (phase === 'stale' || phase === 'failed' || text) {
    return (
      <div class="notice">
        <h1>No connection</h1>
        <p>{text || 'The gateway does not answer.'}</p>
        <p class="muted">The page retries, and shows the board once it is connected.</p>
      </div>
    );
  }
  return (
    <div class="notice">
      <h1>{phase === 'connecting' ? 'Connecting' : 'Catching up'}</h1>
      <p class="muted">{phase === 'connecting' ? 'Requesting Nodes and Pods.' : 'Receiving the first list.'}</p>
    </div>
  );
}
