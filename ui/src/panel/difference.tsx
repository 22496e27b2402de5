// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The difference between a version of an object and the previous one, loaded when the entry is opened. */

import { useEffect, useState } from 'preact/hooks';
import { count } from '../data/quantity';
import type { Change, History } from '../time/history';
import { hunks, yamlLines, type DiffLine, type Hunk } from './diff';

/** Long, and rarely of interest. */
const SKIPPED = new Set(['metadata.managedFields']);
/** How many lines of a hunk are shown. */
const maxLines = 400;

export function Difference({ history, path, change }: { history: History; path: string; change: Change }) {
  const [difference, setDifference] = useState<{ hunks: Hunk[]; words: string } | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    history.version(path, change.resourceVersion, stop.signal).then(
      (version) => setDifference(read(change, version)),
      // The patch alone has the new values.
      (error: Error) => stop.signal.aborted || setDifference({ hunks: hunks(change.changes ?? [], undefined), words: `The previous version is not available: ${error.message}` }),
    );
    return () => stop.abort();
  }, [path, change.resourceVersion]);
  if (!difference) return <p class="muted small">loading</p>;
  return (
    <div class="diff">
      {difference.words && <p class="muted small">{difference.words}</p>}
      <Hunks hunks={difference.hunks} />
    </div>
  );
}

export const Hunks = ({ hunks }: { hunks: Hunk[] }) => (
  <>
    {hunks.map((hunk, i) => (
      <figure key={i}>
        {hunk.path && <figcaption class="mono">{hunk.path}</figcaption>}
        <pre tabIndex={hunk.lines.length > 12 ? 0 : undefined}>
          {hunk.lines.slice(0, maxLines).map((line, n) => <Line key={n} line={line} />)}
          {hunk.lines.length > maxLines && <div class="muted">and {count(hunk.lines.length - maxLines, 'more line')}</div>}
        </pre>
      </figure>
    ))}
  </>
);

/** The sign makes the line readable without colours. */
const Line = ({ line: { sign, text } }: { line: DiffLine }) =>
  sign === '-' ? <del><i>-</i>{text}</del> : sign === '+' ? <ins><i>+</i>{text}</ins> : <div><i> </i>{text}</div>;

function read(change: Change, version: Change | undefined): { hunks: Hunk[]; words: string } {
  const patch = change.changes ?? version?.changes ?? [];
  if (patch.length) return { hunks: hunks(patch, version?.before), words: '' };
  const whole = change.type === 'DELETED' ? (version?.before ?? version?.object) : version?.object;
  if (whole === undefined) return { hunks: [], words: 'No significant field changed.' };
  const words = change.type === 'DELETED' ? 'The last known version.' : change.type === 'ADDED' ? 'The object as created.' : 'The object when recording started.';
  return { hunks: [wholeObject(whole, change.type === 'DELETED' ? '-' : change.type === 'ADDED' ? '+' : ' ')], words };
}

/** An object as one hunk, each line with the same sign. */
export const wholeObject = (object: unknown, sign: DiffLine['sign']): Hunk => ({ path: '', lines: yamlLines(object, SKIPPED).map((text) => ({ sign, text })) });
