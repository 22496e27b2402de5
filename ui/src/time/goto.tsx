// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** A field for a moment, in a popover above the strip. */

import { useRef, useState } from 'preact/hooks';
import { now } from '../app/now';
import { phone } from '../app/window';
import { switchZone, utc, zoneName } from '../app/zone';
import { FORMS, parseMoment } from './moment';
import { goTo, showRV } from './playback';

const id = 'go-to';

/** Opens the field. */
export const askMoment = (): void => document.getElementById(id)?.showPopover();

export function GoTo() {
  const [message, setMessage] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const text = field.current!.value;
    const moment = parseMoment(text, now());
    if (!moment) setMessage(`${text ? `“${text}” is not a moment` : 'A moment is'}: ${text ? 'enter ' : ''}${FORMS}.`);
    else if (moment.time > now()) setMessage('This is in the future.');
    else {
      if (moment.time) goTo(moment.time);
      else showRV(moment.at);
      document.getElementById(id)?.hidePopover();
    }
  };
  // Before it opens: what is typed at once must not be lost. The browser focuses the field.
  const opens = (event: Event): void => {
    if ((event as ToggleEvent).newState !== 'open') return;
    setMessage('');
    field.current!.value = '';
  };
  return (
    <form id={id} class="pop" popover="auto" onBeforeToggle={opens} onSubmit={submit}>
      <label for="moment">Go to a moment <span class="muted">in {zoneName(now())}</span></label>
      <div class="row">
        <input id="moment" ref={field} autofocus class="mono" autocomplete="off" spellcheck={false} placeholder="14:02:09, 10m, rv:812" aria-describedby="moment-message" aria-invalid={message !== ''} />
        <button class="now">Go</button>
      </div>
      <p id="moment-message" class={message ? 'failure' : 'visually-hidden'} role="alert">{message}</p>
      {!message && <p class="muted small">Any time that is shown can be pasted here.</p>}
      {phone.value && <button type="button" class="link" onClick={switchZone}>{utc.value ? 'Show times in the time zone of the browser' : 'Show times in UTC'}</button>}
    </form>
  );
}
