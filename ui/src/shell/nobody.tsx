// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { useEffect } from 'preact/hooks';
import { learnUser, loggedIn, logOut, user } from '../app/login';
import { scope } from '../app/state';
import { Copy } from '../panel/copy';

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
