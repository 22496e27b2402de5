// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The legend of a tile zoomed out, which board/far.ts describes. */

const PARTS: [preact.JSX.Element, string, string][] = [
  [<><path class="ready" d="M4 7h16v6H4z" /><path class="succeeded" d="M4 5h16v2H4z" /><path class="failing" d="M4 2h16v3H4z" /></>, 'bands', 'the states of its Pods, by their shares; empty above: room for more'],
  [<path class="failing" d="M12 2l6 11H6z" />, 'shape', 'the most urgent state'],
  [<path class="line" d="M4 11h11v3H4z" />, 'line', 'the portion of its Pods that changed in the last minute; it fades as they age'],
];

export const AfarLegend = () => (
  <dl class="afar">
    {PARTS.map(([drawing, name, words]) => <><dt><svg class="shape" width="24" height="16" viewBox="0 0 24 16" aria-hidden="true">{drawing}</svg> {name}</dt><dd>{words}</dd></>)}
  </dl>
);
