// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { changes, needs } from '../app/state';
import { recorded } from '../time/playback';

/** What the side can show when nothing is selected. */
export function SideTabs() {
  const show = (what: boolean) => (): void => {
    changes.value = what;
    needs.value ||= !what;
  };
  return (
    <nav class="sides" aria-label="Beside the board">
      <button id="side-needs" aria-pressed={!changes.value} title="Needs attention (N)" onClick={show(false)}>Needs attention</button>
      {recorded.value && <button id="side-changes" aria-pressed={changes.value} title="What changed around here (C)" onClick={show(true)}>Changes</button>}
    </nav>
  );
}
