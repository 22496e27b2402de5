// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Evicts the Pods of a Node, as kubectl drain does. */

import { apiURL, getJSON, request, messageOf } from '../app/api';
import { reasonOf, type Eviction, type NodePod } from './plan';

/** The Pods of a Node. */
export const podsOf = async (node: string, signal: AbortSignal): Promise<NodePod[]> => (await getJSON<{ items: NodePod[] | null }>('api/v1/pods', '', signal, { query: { fieldSelector: `spec.nodeName=${node}` } })).items ?? [];

/** How many evictions are asked for at a time. */
const parallel = 5;
/** A refused eviction is asked for again after so long, and whether the Pods are gone, in milliseconds. */
const retryInterval = 3000;
const lookInterval = 1000;
/** How often a free worker looks for a Pod. */
const tick = 100;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Asks for an eviction once. */
async function evict(one: Eviction): Promise<void> {
  const { name, namespace, uid } = one.pod.metadata;
  const again = (reason: string): void => void Object.assign(one, { state: 'refused', reason, due: Date.now() + retryInterval });
  let response: Response;
  try {
    response = await request(apiURL(`api/v1/namespaces/${namespace}/pods/${name}/eviction`), {
      method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace }, deleteOptions: { preconditions: { uid } } }),
    });
  } catch (error) {
    again(messageOf(error));
    return;
  }
  if (response.ok) Object.assign(one, { state: 'evicted', reason: '' });
  else if (response.status === 404) Object.assign(one, { state: 'gone', reason: '' });
  else {
    const reason = reasonOf(await response.text());
    // 409: it was just changed, or another Pod has its name, which `look` notices.
    if ([409, 429, 503, 504].includes(response.status)) again(reason);
    else Object.assign(one, { state: 'failed', reason });
  }
}

/**
 * Evicts Pods until all of them are gone or cannot be evicted, or until the
 * signal is aborted: evictions that were asked for are then still waited for.
 * `report` is called after each change.
 */
export async function drain(node: string, pods: NodePod[], report: (all: Eviction[]) => void, signal: AbortSignal): Promise<Eviction[]> {
  const all = pods.map((pod): Eviction => ({ pod, state: 'waiting', reason: '', due: 0 }));
  const over = (): boolean => signal.aborted || all.every(({ state }) => state === 'gone' || state === 'failed');
  const work = async (): Promise<void> => {
    while (!over()) {
      const next = all.find(({ state, due }) => (state === 'waiting' || state === 'refused') && due <= Date.now());
      if (!next) {
        await sleep(tick);
        continue;
      }
      next.state = 'asked';
      await evict(next);
      report([...all]);
    }
  };
  const look = async (): Promise<void> => {
    while (!over()) {
      await sleep(lookInterval);
      try {
        const there = new Set((await podsOf(node, signal)).map(({ metadata }) => metadata.uid));
        for (const one of all) if (!there.has(one.pod.metadata.uid) && one.state !== 'asked') Object.assign(one, { state: 'gone', reason: '' });
        report([...all]);
      } catch {
        // It is looked at again.
      }
    }
  };
  report([...all]);
  await Promise.all([...Array.from({ length: parallel }, work), look()]);
  return all;
}
