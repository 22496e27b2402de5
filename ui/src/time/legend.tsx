// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The legend of the strip, and of what the board has besides the shapes of the states. */

type Mark = 'added' | 'modified' | 'deleted' | 'unrecorded' | 'gap' | 'warning' | 'event' | 'flag' | 'moment' | 'range';

const MARKS: [Mark, string, string][] = [
  ['modified', 'grey bar', 'changes of Pods and Nodes'],
  ['added', 'green bar', 'created'],
  ['deleted', 'red bar', 'deleted'],
  ['warning', 'large diamond', 'a Warning Event'],
  ['event', 'small diamond', 'another Event'],
  ['gap', 'hatched, amber', 'a gap: nothing was observed'],
  ['unrecorded', 'hatched, grey', 'not recorded, or no longer kept'],
  ['flag', 'flag', 'a marked moment'],
  ['moment', 'line', 'the shown moment'],
  ['range', 'shaded', 'the selected range'],
];

/** The marks of the strip with their meaning. */
export const StripLegend = () => (
  <dl class="marks">
    {MARKS.map(([mark, name, words]) => <><dt><Swatch mark={mark} /><span class="visually-hidden">{name}</span></dt><dd>{words}</dd></>)}
  </dl>
);

export const Swatch = ({ mark }: { mark: Mark }) => (
  <svg class={`swatch mark-${mark}`} width="24" height="16" viewBox="0 0 24 16" aria-hidden="true">
    {SHAPES[mark] ?? <path d="M5 4h4v12H5zM11 1h4v15h-4zM17 7h4v9h-4z" />}
  </svg>
);

const HATCH = 'M-2 14 12 0M4 16 20 0M12 16 26 2M20 16 26 10';
const SHAPES: Partial<Record<Mark, preact.JSX.Element>> = {
  gap: <path class="hatch" d={HATCH} />,
  unrecorded: <path class="hatch" d={HATCH} />,
  warning: <path d="M12 3l5 5-5 5-5-5z" />,
  event: <path d="M12 5l3 3-3 3-3-3z" />,
  flag: <path d="M8 1h1v15H8zM9 1l9 4-9 4z" />,
  moment: <path d="M11 4h2v12h-2zM12 0a4 4 0 1 1 0 8 4 4 0 0 1 0-8z" />,
  range: <path d="M2 1h20v14H2z" />,
};
