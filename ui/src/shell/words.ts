// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import type { Cluster } from '../data/cluster';
import type { Scope } from '../data/protocol';
import { count } from '../data/quantity';
import type { StateName } from '../data/state';

/** Describes the states. */
export const WORDS: Record<StateName, string> = {
  failing: 'a container cannot start or keeps exiting',
  unknown: 'NotReady Node: kubelet stopped posting node status',
  unready: 'running, not ready',
  pending: 'waiting to be scheduled or to start',
  terminating: 'being deleted',
  ready: 'running and ready',
  succeeded: 'completed',
};

/** Why the Nodes are not shown, in a few words; empty if they are. */
export const unread = ({ nodes }: Scope): string => (!nodes ? '' : nodes.failed ? 'The Nodes could not be read' : nodes.denied ? 'You may not list Nodes' : 'No Nodes are recorded');

/** What could not be read so far, in a sentence; empty if that is nothing. What the page shows is not everything then. */
export function lacking({ nodes, pods }: Scope): string {
  const what = [...(nodes?.failed ? ['the Nodes'] : []), ...(pods ? [`the Pods${pods.namespaces.length ? ` of ${pods.namespaces.join(', ')}` : ''}`] : [])];
  return what.length ? `${what.join(' and ')} could not be read.`.replace(/^t/, 'T') : '';
}

/** How many Nodes and Pods are shown. Without the Nodes, only the names of those that have Pods are known. */
export const sizeOf = ({ nodes, pods }: Cluster, scope: Scope): string[] => [...(scope.nodes ? [] : [count(nodes.size, 'node')]), ...(scope.pods && !pods ? [] : [count(pods, 'pod')])];
