// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The graph of relations as SVG: each object is a link, each group a button. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { selectionOf, selectionText } from '../app/state';
import { describe, type StateName } from '../data/state';
import { PATHS } from '../board/paths';
import type { Graph as Edges } from './edges';
import { boxHeight, boxWidth, layout, maxOpen, type Box, type Line } from './layout';
import { plural, type Pod, type Thing } from './objects';
import { go, worst } from './parts';
import { rolloutOf, type Workload } from './rollout';

/** How many letters of a name fit into a box, and of what an edge says. */
const maxName = 18;
const maxWords = 14;

const cut = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most >> 1)}…${text.slice(1 - (most >> 1))}` : text);

/** The state of an object that was read, and in words; none of other kinds than Pods and workloads. */
function stateOf(thing: Thing | undefined, now: number): { state?: StateName; words: string } {
  if (thing?.kind === 'Pod' && thing.status) return { state: worst([thing as Pod], now), words: describe(thing as Pod).text };
  if (!thing?.status || !/^(Deployment|StatefulSet|DaemonSet|ReplicaSet)$/.test(thing.kind ?? '') || !thing.spec) return { words: '' };
  const { ready, wanted } = rolloutOf(thing as Workload);
  return { state: ready >= wanted ? 'ready' : 'unready', words: `${ready} of ${wanted} ready` };
}

/** The address of an object: what is in the page's own, but for the selection. */
function addressOf(path: string): string {
  const query = new URLSearchParams(location.search);
  const selected = selectionOf(path);
  if (selected) query.set('sel', selectionText(selected));
  return `?${query}`;
}

export function Graph({ graph, centre, left, right, now, title }: { graph: Edges; centre: string; left: number; right: number; now: number; title: string }) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const scroller = useRef<HTMLDivElement>(null);
  const { boxes, lines, width, height } = useMemo(() => layout(graph, centre, left, right, open), [graph, left, right, open]);
  const middle = boxes.find(({ column }) => column === 0)!;
  useEffect(() => {
    const { current } = scroller;
    if (current) current.scrollLeft = middle.x + boxWidth / 2 - current.clientWidth / 2;
  }, [centre, middle.x]);
  const toggle = (id: string): void => {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
  };
  return (
    <div class="graph" ref={scroller}>
      <svg width={width} height={height} role="group" aria-label={title}>
        {lines.map((line) => <path key={`${line.from.id} ${line.to.id}`} class="line" d={curve(line)} />)}
        {boxes.map((box) => box.words && box.group !== 'open' && (
          <text key={`words ${box.id}`} class="word" x={box.column > 0 ? box.x - 6 : box.x + boxWidth + 6} y={box.y + boxHeight / 2 - 5} text-anchor={box.column > 0 ? 'end' : 'start'} aria-hidden="true">{cut(box.words, maxWords)}</text>
        ))}
        {/* In the order in which Tab should reach them. */}
        {[...boxes].sort((a, b) => a.column - b.column || a.y - b.y).map((box) => <Drawn key={box.id} box={box} now={now} toggle={toggle} />)}
      </svg>
    </div>
  );
}

/** From the right edge of a box to the left edge of another. */
function curve({ from, to }: Line): string {
  const [x1, y1, x2, y2] = [from.x + boxWidth, from.y + boxHeight / 2, to.x, to.y + boxHeight / 2];
  const bend = (x2 - x1) / 2;
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

/** How something is related, for those who do not see the lines. */
const relation = ({ words, column, next }: Box): string => (!words ? '' : column > 0 ? `: ${next} ${words} it` : `: ${words} ${next}`);

function Drawn({ box, now, toggle }: { box: Box; now: number; toggle: (id: string) => void }) {
  const { id, members, group, column } = box;
  const [{ kind, name, path }] = members;
  if (group) {
    const pods = members.filter(({ thing }) => thing?.kind === 'Pod' && thing.status).map(({ thing }) => thing as Pod);
    const words = `${members.length.toLocaleString('en')} ${plural(kind)}`;
    const press = (event: KeyboardEvent): void => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      event.stopPropagation();
      toggle(id);
    };
    return (
      <g class="box group" role="button" tabindex={0} aria-expanded={group === 'open'} aria-label={`${words}${relation(box)}`} onClick={() => toggle(id)} onKeyDown={press}>
        <Frame box={box} state={pods.length ? worst(pods, now) : undefined} above={group === 'open' && members.length > maxOpen ? `the first ${maxOpen} of` : group === 'open' ? 'fold' : 'show'} below={words} />
      </g>
    );
  }
  const { state, words } = stateOf(members[0].thing, now);
  const frame = <Frame box={box} state={state} above={kind} below={cut(name, state ? maxName - 2 : maxName)} />;
  const label = `${kind} ${name}${words && `, ${words}`}${relation(box)}`;
  if (column === 0) return <g class="box shown" role="img" aria-label={`${label}, shown`}>{frame}</g>;
  if (!path) return <g class="box" role="img" aria-label={label}><title>{label}</title>{frame}</g>;
  const click = (event: MouseEvent): void => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return; // in another tab
    event.preventDefault();
    go(path);
  };
  // The title is its name: an aria-label would have to have the text as it is shown, which may be cut.
  return <a class="box" href={addressOf(path)} onClick={click}><title>{label}</title>{frame}</a>;
}

/** What a box looks like. Its label says more, since names may be cut here. */
function Frame({ box: { x, y }, state, above, below }: { box: Box; state?: StateName; above: string; below: string }) {
  return (
    <g aria-hidden="true">
      <rect x={x} y={y} width={boxWidth} height={boxHeight} rx={8} />
      <text class="kind" x={x + 10} y={y + 17}>{cut(above, 21)}</text>
      {state && <svg x={x + 10} y={y + 25} width={12} height={12} viewBox="0 0 16 16" class={state}><path d={PATHS[state]} fill-rule="evenodd" /></svg>}
      <text class="name" x={x + (state ? 26 : 10)} y={y + 35}>{below}</text>
    </g>
  );
}
