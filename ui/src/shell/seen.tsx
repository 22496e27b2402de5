// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Says which part of the cluster a reader without rights to all of it sees. */

import { useEffect } from 'preact/hooks';
import { learnUser, loggedIn, logOut, user } from '../app/login';
import { scope } from '../app/state';
import { count } from '../data/quantity';
import { Copy } from '../panel/copy';
import { maxHistories } from '../time/namespaced';

/** How many namespaces are named. */
const maxNamed = 6;

/** What is shown, above the board; nothing if it is everything. */
export function Seen() {
  const { namespaces, omitted, incomplete, nodes } = scope.value;
  if (!namespaces && !nodes) return null;
  const named = (namespaces ?? []).slice(0, maxNamed);
  const others = (namespaces ?? []).slice(maxNamed);
  const total = (namespaces?.length ?? 0) + omitted;
  return (
    <div class="chip scope" role="status">
      {namespaces && (
        <p>
          Showing {omitted > 0 ? `${namespaces.length.toLocaleString('en')} of ` : ''}{count(total, 'namespace')} that you may read:{' '}
          <span class="mono" title={others.length ? namespaces.join(', ') : undefined}>{named.join(', ')}</span>{others.length + omitted > 0 && ` and ${(others.length + omitted).toLocaleString('en')} more`}.
          {namespaces.length > maxHistories && ` The strip and the changes are those of the first ${maxHistories}.`}
          {incomplete && ' There may be others: only the first 1,000 namespaces of the cluster were checked.'}
        </p>
      )}
      {nodes && (
        <details>
          <summary>You may not list Nodes: the Pods are grouped by the names of their Nodes, whose states are not known.</summary>
          <p class="muted">{nodes}</p>
        </details>
      )}
    </div>
  );
}

/** A word of a shell's command: an administrator pastes it, and a user may have chosen their name. */
export const word = (text: string): string => (/^[\w.:@/+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** Tells a reader without any rights whom to ask. */
export function Nobody() {
  useEffect(() => {
    if (!user.peek()) void learnUser();
  }, []);
  const name = user.value?.username ?? '';
  const [, account] = /^system:serviceaccount:([^:]+:[^:]+)$/.exec(name) ?? [];
  const command = `kubectl create rolebinding read-pods --clusterrole=view ${account ? `--serviceaccount=${account}` : `--user=${word(name || 'USER')}`} --namespace=NAMESPACE`;
  const { incomplete } = scope.value;
  return (
    <div class="notice veil nobody" role="alert">
      <h1>You may not list Pods in {incomplete ? 'the first 1,000 namespaces' : 'any namespace'}</h1>
      {incomplete && <p>The cluster has more namespaces, in which the gateway did not check your rights.</p>}
      <p>{name ? <>The API server knows you as <b class="mono">{name}</b>, and allows this user nothing that the board could show.</> : 'The API server allows you nothing that the board could show.'}</p>
      <p>Ask an administrator of this cluster for read access to your namespaces. This command gives it:</p>
      <p class="row"><code>{command}</code> <Copy text={() => command} label="Copy the command" /></p>
      <p class="muted">The page asks again every 30 seconds, and shows what you may read then.</p>
      {loggedIn.value && <p><button class="button" onClick={logOut}>Log in as somebody else</button></p>}
    </div>
  );
}
