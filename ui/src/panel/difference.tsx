// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What a version of an object differs in from the one before, asked for when it is opened. */

import { useEffect, useState } from 'preact/hooks';
import type { Change, History } from '../time/history';
import { hunks, yamlLines, type DiffLine, type Hunk } from './diff';

/** No news, and far too long. */
const SKIPPED = new Set(['metadata.managedFields']);
/** The most lines of one place that are shown. */
const MOST = 400;

export function Difference({ history, path, change }: { history: History; path: string; change: Change }) {
  const [found, set] = useState<{ hunks: Hunk[]; words: string } | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    history.version(path, change.resourceVersion, stop.signal).then(
      (version) => set(read(change, version)),
      // What is new is known all the same.
      (error: Error) => stop.signal.aborted || set({ hunks: hunks(change.changes ?? [], undefined), words: `What was before is not to be had: ${error.message}` }),
    );
    return () => stop.abort();
  }, [path, change.resourceVersion]);
  if (!found) return <p class="muted small">asking for it</p>;
  return (
    <div class="diff">
      {found.words && <p class="muted small">{found.words}</p>}
      {found.hunks.map((hunk, i) => (
        <figure key={i}>
          {hunk.path && <figcaption class="mono">{hunk.path}</figcaption>}
          <pre tabIndex={hunk.lines.length > 12 ? 0 : undefined}>
            {hunk.lines.slice(0, MOST).map((line, n) => <Line key={n} line={line} />)}
            {hunk.lines.length > MOST && <div class="muted">and {hunk.lines.length - MOST} more lines</div>}
          </pre>
        </figure>
      ))}
    </div>
  );
}

/** The sign is there to be read, not only the colour. */
const Line = ({ line: { sign, text } }: { line: DiffLine }) =>
  sign === '-' ? <del><i>-</i>{text}</del> : sign === '+' ? <ins><i>+</i>{text}</ins> : <div><i> </i>{text}</div>;

function read(change: Change, version: Change | undefined): { hunks: Hunk[]; words: string } {
  const patch = change.changes ?? version?.changes ?? [];
  if (patch.length) return { hunks: hunks(patch, version?.before), words: '' };
  const whole = change.type === 'DELETED' ? (version?.before ?? version?.object) : version?.object;
  if (whole === undefined) return { hunks: [], words: 'Nothing but noise: no field that means anything has changed.' };
  const sign = change.type === 'DELETED' ? '-' : change.type === 'ADDED' ? '+' : ' ';
  const words = change.type === 'DELETED' ? 'The last that was seen of it.' : change.type === 'ADDED' ? 'As it was created.' : 'As it was.';
  return { hunks: [{ path: '', lines: yamlLines(whole, SKIPPED).map((text) => ({ sign, text })) }], words };
}
