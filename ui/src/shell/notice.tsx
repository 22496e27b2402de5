// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { clock } from '../time/words';
import { beat, cluster, mode, status } from '../app/state';

/** What there is to say while there is nothing to see: each state has its words, none has a spinner. */
export function Notice() {
  void beat.value;
  const { phase, text } = status.value;
  if (phase === 'denied') {
    return (
      <div class="notice">
        <h1>Not allowed</h1>
        <p>{text || 'You may not list Pods.'}</p>
        <p class="muted">The board reads Pods and Nodes in all namespaces: it needs <code>list</code> and <code>watch</code> on both.</p>
      </div>
    );
  }
  if (cluster.pods + cluster.nodes.size > 0) {
    // What is on the board is not what is: it says so, and since when.
    if (phase === 'failed') return <p class="chip" role="alert">{text}</p>;
    if (phase !== 'stale') return null;
    return <p class="chip" role="alert">Stale since {clock(status.value.since)}. {text}</p>;
  }
  if (cluster.synced) {
    return (
      <div class="notice">
        <h1>{mode.value ? 'There was nothing here' : 'An empty cluster'}</h1>
        <p>{mode.value ? 'At this moment the cluster had no Nodes and no Pods.' : 'No Nodes and no Pods yet. They appear here as they come.'}</p>
      </div>
    );
  }
  if (phase === 'failed' && mode.value) {
    return (
      <div class="notice">
        <h1>Not recorded</h1>
        <p>{text}</p>
        <p class="muted">Esc goes back to now.</p>
      </div>
    );
  }
  if (phase === 'stale' || phase === 'failed' || (phase === 'connecting' && text)) {
    return (
      <div class="notice">
        <h1>No connection</h1>
        <p>{text || 'The gateway does not answer.'}</p>
        <p class="muted">It is tried again; the board comes by itself.</p>
      </div>
    );
  }
  return (
    <div class="notice">
      <h1>{phase === 'connecting' ? 'Connecting' : 'Catching up'}</h1>
      <p class="muted">{phase === 'connecting' ? 'Asking for Nodes and Pods.' : 'The first list is on its way.'}</p>
    </div>
  );
}
