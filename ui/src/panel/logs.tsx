// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The log of a container, followed while it is shown. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { apiError, apiURL } from '../app/api';
import type { Pod } from '../data/state';

/** So many lines are asked for at first, and so many are kept. */
const TAIL = 500;
const KEPT = 5000;

export function Logs({ pod }: { pod: Pod }) {
  const containers = [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])].map((c) => c.name ?? '');
  const [container, choose] = useState(containers[0] ?? '');
  const [previous, setPrevious] = useState(false);
  const [follow, setFollow] = useState(true);
  const [lines, setLines] = useState<string[]>([]);
  const [words, say] = useState('');
  const end = useRef<HTMLPreElement>(null);
  const { namespace, name, uid } = pod.metadata;

  useEffect(() => {
    const stop = new AbortController();
    setLines([]);
    say('asking for the log');
    const query = new URLSearchParams({ container, tailLines: String(TAIL), ...(previous ? { previous: 'true' } : follow ? { follow: 'true' } : {}) });
    read(apiURL(`/api/v1/namespaces/${namespace}/pods/${name}/log?${query}`), stop.signal, (more) => {
      say('');
      setLines((old) => (old.length + more.length > KEPT ? [...old, ...more].slice(-KEPT) : [...old, ...more]));
    }).then(
      () => say(follow && !previous ? 'the log has ended' : ''),
      (error: Error) => stop.signal.aborted || say(error.message),
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
        <select aria-label="Container" value={container} onChange={(e) => choose(e.currentTarget.value)}>
          {containers.map((c) => <option key={c}>{c}</option>)}
        </select>
        <label><input type="checkbox" checked={follow} disabled={previous} onChange={(e) => setFollow(e.currentTarget.checked)} /> follow</label>
        <label><input type="checkbox" checked={previous} onChange={(e) => setPrevious(e.currentTarget.checked)} /> previous</label>
      </div>
      <pre class="log" ref={end} tabIndex={0} aria-label={`Log of ${container}`}>{lines.join('\n')}</pre>
      {words && <p class="muted">{words}</p>}
      {!words && lines.length === 0 && <p class="muted">The log is empty.</p>}
    </>
  );
}

/** Reads lines as they come, and tells of those that came together at once. */
async function read(url: string, signal: AbortSignal, tell: (lines: string[]) => void): Promise<void> {
  const response = await fetch(url, { signal });
  if (!response.ok) throw await apiError(response);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split('\n');
    rest = lines.pop()!;
    if (lines.length) tell(lines);
  }
  if (rest) tell([rest]);
}
