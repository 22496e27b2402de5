// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The log of a container, followed while it is visible. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { apiError, apiURL, request } from '../app/api';
import type { Pod } from '../data/state';

/** How many lines to request first, and to keep. */
const initialLines = 500;
const maxLines = 5000;

export function Logs({ pod }: { pod: Pod }) {
  const containers = [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])].map((c) => c.name ?? '');
  const [container, setContainer] = useState(containers[0] ?? '');
  const [previous, setPrevious] = useState(false);
  const [follow, setFollow] = useState(true);
  const [lines, setLines] = useState<string[]>([]);
  const [message, setMessage] = useState('');
  const end = useRef<HTMLPreElement>(null);
  const { namespace, name, uid } = pod.metadata;

  useEffect(() => {
    const stop = new AbortController();
    setLines([]);
    setMessage('loading the log');
    const query = { container, tailLines: String(initialLines), ...(previous ? { previous: 'true' } : follow ? { follow: 'true' } : {}) };
    read(apiURL(`/api/v1/namespaces/${namespace}/pods/${name}/log`, '', query), stop.signal, (more) => {
      setMessage('');
      setLines((old) => (old.length + more.length > maxLines ? [...old, ...more].slice(-maxLines) : [...old, ...more]));
    }).then(
      () => setMessage(follow && !previous ? 'the log has ended' : ''),
      (error: Error) => stop.signal.aborted || setMessage(error.message),
    );
    return () => stop.abort();
  }, [namespace, name, uid, container, previous, follow]);

  useEffect(() => {
    const pre = end.current;
    if (pre && follow) pre.scrollTop = pre.scrollHeight;
  }, [lines, follow]);

  return (
    <>
      <div class="row tools">
        <select aria-label="Container" value={container} onChange={(e) => setContainer(e.currentTarget.value)}>
          {containers.map((c) => <option key={c}>{c}</option>)}
        </select>
        <label><input type="checkbox" checked={follow} disabled={previous} onChange={(e) => setFollow(e.currentTarget.checked)} /> follow</label>
        <label><input type="checkbox" checked={previous} onChange={(e) => setPrevious(e.currentTarget.checked)} /> previous</label>
      </div>
      <pre class="log" ref={end} tabIndex={0} aria-label={`Log of ${container}`}>{lines.join('\n')}</pre>
      {message && <p class="muted">{message}</p>}
      {!message && lines.length === 0 && <p class="muted">The log is empty.</p>}
    </>
  );
}

/** Reads a stream of lines. `receive` is called with the lines of each chunk. */
async function read(url: string, signal: AbortSignal, receive: (lines: string[]) => void): Promise<void> {
  const response = await request(url, { signal });
  if (!response.ok) throw await apiError(response);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split('\n');
    rest = lines.pop()!;
    if (lines.length) receive(lines);
  }
  if (rest) receive([rest]);
}
