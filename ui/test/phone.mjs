// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// The page on a phone, with a few Pods.

import { apply, gateway, kubectl, namespace, until } from './cluster.mjs';
import { openBoard, shownPods } from './page.mjs';

export const PHONE = { width: 390, height: 844, hasTouch: true, isMobile: true };

/** Creates a Deployment of three Pods and a pending Pod in a namespace. `sel` selects the first Pod, in the URL. */
export async function fill(name) {
  const ns = await namespace(name);
  await kubectl('-n', ns, 'create', 'deployment', 'web', '--image=nginx', '--replicas=3');
  await apply({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: ns, name: 'stuck' }, spec: { nodeSelector: { no: 'node' }, containers: [{ name: 'c', image: 'nginx' }] } });
  await kubectl('-n', ns, 'rollout', 'status', 'deployment/web');
  const pods = (await kubectl('-n', ns, 'get', 'pods', '-l', 'app=web', '-o', 'name')).trim().split('\n').map((name) => name.replace('pod/', ''));
  return { ns, pods, sel: `pod/${ns}/${pods[0]}` };
}

/** Waits for the Pods on the board, and for the counts of the strip. */
export async function filled(page, { ns }) {
  await until('the Pods', async () => Object.keys(await shownPods(page, ns)).length === 4);
  await until('the counts of the strip', async () => (await page.getByRole('slider', { name: 'Moment' }).getAttribute('aria-busy')) === 'false');
}

export async function openFilled(browser, cluster, query, options) {
  const page = await openBoard(browser, gateway, query, options);
  await filled(page, cluster);
  return page;
}

export const box = (page, selector) => page.locator(selector).boundingBox();
export const strip = (page) => box(page, '.plot');
export const stage = (page) => box(page, '.stage');
export const middleOf = ({ x, y, width, height }) => ({ x: x + width / 2, y: y + height / 2 });
