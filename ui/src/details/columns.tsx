// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Any other kind: the columns that the API server prints for it. */

import { stringify } from '@watchkeeper/informer/json';
import { usePolled, table, type Table } from './load';
import { asking, Facts, type Props } from './parts';

/** The columns with a value, but for those that the panel has anyway. */
export function columnsOf({ columnDefinitions, rows }: Table): [string, string][] {
  const cells = rows?.[0]?.cells ?? [];
  return (columnDefinitions ?? []).flatMap(({ name }, i): [string, string][] => {
    const cell = cells[i];
    if (name === 'Name' || name === 'Age' || name === 'Created At' || cell === null || cell === undefined || cell === '') return [];
    return [[name, typeof cell === 'object' ? stringify(cell) : String(cell)]];
  });
}

export function Columns({ path, ...props }: Props & { path: string }) {
  const { value } = usePolled(path, async (signal) => {
    try {
      return { columns: columnsOf(await table(path, props.at, signal)), error: '' };
    } catch (error) {
      return { columns: [], error: (error as Error).message };
    }
  }, asking(props));
  return (
    <>
      {value?.error && <p class="muted small">Its columns could not be read: {value.error}</p>}
      <Facts facts={value?.columns ?? []} />
    </>
  );
}
