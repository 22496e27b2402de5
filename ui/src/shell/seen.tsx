// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Says which part of the cluster is shown, if a reader may not see all of it or a recording has only a part. */

import { limits } from '../app/now';
import { scope } from '../app/state';
import { count } from '../data/quantity';
import { maxHistories } from '../time/namespaced';
import { lacking, unread } from './words';

/** How many namespaces are named. */
const maxNamed = 6;

/** What is shown, above the board; nothing if it is everything. */
export function Seen() {
  const { namespaces, omitted, incomplete, nodes, pods } = scope.value;
  if (!namespaces && !nodes && !pods && !limits()) return null;
  const named = (namespaces ?? []).slice(0, maxNamed);
  const others = (namespaces ?? []).slice(maxNamed);
  const total = (namespaces?.length ?? 0) + omitted;
  return (
    <div class="chip scope" role="status">
      {limits() && <p>{limits()}</p>}
      {namespaces && (
        <p>
          Showing {omitted > 0 ? `${namespaces.length.toLocaleString('en')} of ` : ''}{count(total, 'namespace')} that you may read:{' '}
          <span class="mono" title={others.length ? namespaces.join(', ') : undefined}>{named.join(', ')}</span>{others.length + omitted > 0 && ` and ${(others.length + omitted).toLocaleString('en')} more`}.
          {namespaces.length > maxHistories && ` The strip and the changes are those of the first ${maxHistories}.`}
          {incomplete && ' There may be others: only the first 1,000 namespaces of the cluster were checked.'}
        </p>
      )}
      {pods && <p title={pods.why}>{lacking({ ...scope.value, nodes: null })}</p>}
      {nodes && (
        <details>
          <summary>{unread(scope.value)}: the Pods are grouped by the names of their Nodes, whose states are not known.</summary>
          <p class="muted">{nodes.why}</p>
        </details>
      )}
    </div>
  );
}
