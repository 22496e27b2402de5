// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Reads the objects of a tab as rows of the values of its columns: live, or at a moment. */

import type { KubernetesObject, Row } from '@watchkeeper/informer';
import { getJSON } from '../app/api';
import { collection, type Resource } from '../kinds/resources';
import { ListSource, LiveSource, pageSize, type Follower, type Form, type Source } from '../kinds/source';
import type { Column } from './path';
import { valueOf } from './path';

/** What a tab needs of an object. */
export interface Item {
  key: string;
  namespace: string;
  name: string;
  uid: string;
  rv: string;
  /** In the order of the columns that were read. */
  values: unknown[];
}

/** Which objects. */
export interface Selected {
  resource: Resource;
  namespace: string;
  /** A label selector; all objects without it. */
  selector: string;
}

const rowItem = ([namespace, name, uid, rv, ...values]: Row): Item => ({
  key: namespace ? `${namespace as string}/${name as string}` : (name as string), namespace: (namespace as string | null) ?? '', name: name as string, uid: uid as string, rv: rv as string, values: values.map((value) => value ?? undefined),
});

/** The gateway has a path with a name in brackets, quoted either way. */
const fieldsOf = (columns: Column[]): string[] => columns.map(({ path }) => path);

function objectItem(columns: Column[]): (object: KubernetesObject) => Item {
  return (object) => {
    const { namespace = '', name, uid = '', resourceVersion = '' } = object.metadata as { namespace?: string; name: string; uid?: string; resourceVersion?: string };
    return { key: namespace ? `${namespace}/${name}` : name, namespace, name, uid, rv: resourceVersion, values: columns.map(({ steps }) => valueOf(object, steps)) };
  };
}

/** Rows need a column. */
const fallback = 'metadata.uid';

/** Follows the objects. */
export function follow({ resource, namespace, selector }: Selected, columns: Column[], follower: Follower<Item>): Source<Item> {
  const selects = selector ? { labelSelector: selector } : {};
  const form: Form<Item> = {
    open: (connection, name, of) => connection.informer<Item>(name, { ...of, ...selects, rows: true, fields: columns.length ? fieldsOf(columns) : [fallback], pageSize: 1000, transform: rowItem }),
    plain: { open: (connection, name, of) => connection.informer<KubernetesObject, Item>(name, { ...of, ...selects, pageSize, transform: objectItem(columns) }) },
  };
  return new LiveSource(resource, follower, form, namespace);
}

/** Lists the objects at a moment, as /at takes it. */
export function listAt({ resource, namespace, selector }: Selected, columns: Column[], at: string, follower: Follower<Item>): Source<Item> {
  const fields = (columns.length ? fieldsOf(columns) : [fallback]).join(',');
  return new ListSource<Item>(resource, at, follower, async (query, signal) => {
    const { metadata, rows } = await getJSON<{ metadata: { continue?: string }; rows: Row[] | null }>(
      collection(resource, namespace), at, signal, { query: { ...query, fields, as: 'rows', ...(selector && { labelSelector: selector }) } },
    );
    return { lines: (rows ?? []).map(rowItem), next: metadata.continue ?? '' };
  });
}
