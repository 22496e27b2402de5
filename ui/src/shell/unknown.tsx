// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { absent, lost, misplaced } from '../app/contact';
import { healthyWords } from '../app/attention';
import { findings } from '../app/findings';
import { asked } from '../app/login';
import { limits } from '../app/now';
import { refresh, cluster, scope, status } from '../app/state';
import { zoned } from '../time/words';
import { Shape } from './shape';
import { lacking } from './words';

const partly = 'This needed attention then, and more may have:';

/** Says above the list of what needs attention whether the list can be relied on. `none`: the list is empty. */
export function Unknown({ none }: { none: boolean }) {
  void refresh.value;
  const { phase, text } = status.value;
  const missing = lacking(scope.value) || (cluster.synced ? '' : 'The first list is not complete.');
  if (lost.value) {
    return (
      <div class="unknown-since">
        <p><Shape state="unknown" size={14} /> <b>Unknown since {zoned(lost.value)}</b></p>
        <p class="muted">{text} {misplaced.value ? !none && partly : missing ? `${missing} ${none ? 'What needed attention then is not known.' : partly}` : (findings.value ? (none ? 'Nothing needed attention until then.' : 'This needed attention then:') : none ? 'No Pod and no Node needed attention until then; what else did is not known.' : 'These Pods and Nodes needed attention then; what else did is not known:')}</p>
      </div>
    );
  }
  if (absent.value) return <p class="calm muted">Not known: {absent.value}. {limits()}</p>;
  if (!none) return missing || limits() ? <p class="calm muted">{missing && `${missing} More may need attention.`} {limits()}</p> : null;
  if (asked.value) return <p class="calm muted">Not known before you log in.</p>;
  const words = !cluster.synced && phase !== 'denied' ? 'Waiting for the first list.'
    : missing && phase !== 'denied' ? `Not known. ${missing}`
    : phase === 'live' || phase === 'past' ? `${healthyWords(cluster, scope.value, findings.value !== null)} ${limits()}`
    : phase === 'catching up' || !text ? 'Catching up.'
    // A moment that could not be loaded, or Nodes or Pods that may not be listed.
    : `Not known. ${text}`;
  return <p class="calm muted">{words}</p>;
}
