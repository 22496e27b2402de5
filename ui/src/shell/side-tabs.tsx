// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { changes, needs } from '../app/state';
import { recorded } from '../time/playback';

/** Switches the side between its two lists. */
export function SideTabs() {
  const show = (what: boolean) => (): void => {
    changes.value = what;
    needs.value ||= !what;
  };
  return (
    <nav class="sides" aria-label="Side lists">
      <button id="side-needs" aria-pressed={!changes.value} title="Needs attention (N)" onClick={show(false)}>Needs attention</button>
      {recorded.value && <button id="side-changes" aria-pressed={changes.value} title="Changes around this time (C)" onClick={show(true)}>Changes</button>}
    </nav>
  );
}
