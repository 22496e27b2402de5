// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The resources of the cluster that can be listed. */

export interface Resource {
  /** `deployments.apps`, as kubectl writes it; `pods` in the core group. */
  id: string;
  group: string;
  version: string;
  /** The plural. */
  name: string;
  kind: string;
  namespaced: boolean;
  /** Other names: the singular, short names, the kind; in lower case. */
  names: string[];
  /** It can be watched. */
  watched: boolean;
}

/** The resource with a name, as kubectl understands it: `deploy`, `Deployment`, `deployments.apps`. Undefined if there is none. */
export function named(resources: Resource[], text: string): Resource | undefined {
  const word = text.toLowerCase();
  return resources.find(({ id }) => id === word) ?? resources.find(({ name, group, names }) => (name === word || names.includes(word)) && !group.includes('.k8s.io')) ?? resources.find(({ name, names }) => name === word || names.includes(word));
}

/** The API path of the collection, in a namespace or in all. */
export const collection = ({ group, version, name }: Pick<Resource, 'group' | 'version' | 'name'>, namespace = ''): string =>
  `/${group ? `apis/${group}` : 'api'}/${version}/${namespace ? `namespaces/${namespace}/` : ''}${name}`;
