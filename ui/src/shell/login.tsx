// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Asks for a bearer token when the API answers 401. The board stays as it is. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { asked, login } from '../app/login';
import { lost } from '../app/contact';
import { zoned } from '../time/words';

export function Login() {
  const why = asked.value;
  return why && <Panel why={why} />;
}

function Panel({ why }: { why: 'needed' | 'expired' }) {
  const field = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState('');
  const [checking, setChecking] = useState(false);
  useEffect(() => {
    // Somebody who types elsewhere goes on.
    if (!/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? '')) field.current?.focus();
  }, []);
  const submit = (event: Event): void => {
    event.preventDefault(); // the token must not become a part of a URL
    const input = field.current!;
    if (checking) return;
    setChecking(true);
    setProblem('');
    void login(input.value).then((words) => {
      setChecking(false);
      setProblem(words);
      // A token that was refused is of no use, and neither is a part of it.
      if (words) {
        input.value = '';
        input.focus();
      }
    });
  };
  return (
    <section class={`login ${why}`} role="dialog" aria-labelledby="login-title" aria-describedby="login-words">
      {/* The page's keys are letters. The field has no name, so that nothing would send it. */}
      <form method="post" autocomplete="off" onSubmit={submit} onKeyDown={(event) => event.stopPropagation()}>
        <h1 id="login-title">{why === 'needed' ? 'Log in' : 'Your login has expired'}</h1>
        <p id="login-words">
          {why === 'needed'
            ? 'The API server wants to know who you are. Paste a bearer token.'
            : `The API server does not accept your token any more.${lost.value ? ` The board shows what was known at ${zoned(lost.value)}.` : ''} Paste a new token to go on from here.`}
        </p>
        <label for="token">Token</label>
        <div class="row">
          <input
            id="token" ref={field} type="password" autocomplete="off" autocapitalize="off" spellcheck={false}
            aria-invalid={problem !== ''} aria-describedby="login-problem"
          />
          <button class="button" type="submit">{checking ? 'Checking' : 'Log in'}</button>
        </div>
        <p id="login-problem" class={problem ? 'failure' : 'visually-hidden'} role="alert">{problem}</p>
        <p class="muted">For a token of the ServiceAccount NAME: <code>kubectl create token NAME</code></p>
        <p class="muted">The page keeps it in memory only: it goes with this tab. If a proxy in front of this page logs you in, reload the page.</p>
      </form>
    </section>
  );
}
