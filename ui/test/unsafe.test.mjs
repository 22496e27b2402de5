// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Texts of the cluster with characters that turn or hide what is around them.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open } from './browser.mjs';
import { startRecording, until } from './cluster.mjs';

const unsafe = '\u202e\u009b\u2066';

let browser;
let recording;

before(async () => {
  browser = await launch();
  recording = await startRecording('demo/incident.wkr');
});

after(async () => {
  await browser?.close();
  await recording?.stop();
});

/** Appends the characters to every text for people. */
function spoil(value) {
  for (const [key, child] of Object.entries(value ?? {})) {
    if (typeof child === 'object') {
      if (['summary', 'what', 'messages'].includes(key)) value[key] = child?.map((text) => text + unsafe);
      else spoil(child);
    } else if (typeof child === 'string' && ['reason', 'message', 'title', 'text', 'app', 'image', 'manager'].includes(key)) value[key] = child + unsafe;
  }
}

test('no text on the page turns or hides another one', async () => {
  for (const tab of ['overview', 'story', 'versions', 'yaml']) {
    const page = await open(browser, 'about:blank');
    await page.route(/\/(watchkeeper\/v1\/(history\/(changes|versions)|story|findings)|apis\/apps\/v1\/namespaces)/, async (route) => {
      const response = await route.fetch();
      if (!/json/.test(response.headers()['content-type'])) return route.fulfill({ response });
      const json = await response.json();
      spoil(json);
      await route.fulfill({ response, json });
    });
    await page.goto(`${recording.url}/ui/?${new URLSearchParams({ sel: '/apis/apps/v1/namespaces/shop/deployments/checkout', tab })}`);
    const shown = await until(tab, async () => {
      const text = await page.evaluate(() => [...document.querySelectorAll('body *')].flatMap((one) => [one.title, one.ariaLabel, ...[...one.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data)]).filter(Boolean).join('\n'));
      return (tab === 'yaml' ? /\\u202e\\u009b\\u2066/ : /\ufffd\ufffd\ufffd/).test(text) && text;
    });
    assert.doesNotMatch(shown, /[\x00-\x08\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/, tab);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.close();
  }
});
