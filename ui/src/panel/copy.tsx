// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { useState } from 'preact/hooks';

/** A button that copies a text to the clipboard. */
export function Copy({ text, label }: { text: () => string; label: string }) {
  const [message, setMessage] = useState('');
  const copy = (): void => {
    navigator.clipboard.writeText(text()).then(
      () => setMessage('copied'),
      () => setMessage('not allowed'),
    );
    setTimeout(() => setMessage(''), 1500);
  };
  return (
    <button class="quiet" title={label} aria-label={label} onClick={copy}>
      {message || (
        <svg width="14" height="14" viewBox="0 0 16 16" aria-hidden="true">
          <path fill-rule="evenodd" d="M5 1h8.5A1.5 1.5 0 0 1 15 2.5V11h-1.5V2.5H5zM2.5 4h8A1.5 1.5 0 0 1 12 5.5v8a1.5 1.5 0 0 1-1.5 1.5h-8A1.5 1.5 0 0 1 1 13.5v-8A1.5 1.5 0 0 1 2.5 4zm0 1.5v8h8v-8z" />
        </svg>
      )}
    </button>
  );
}
