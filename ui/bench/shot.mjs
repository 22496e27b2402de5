// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// node bench/shot.mjs URL FILE [light]: takes a picture of a page. SCRIPT in the
// environment is evaluated in the page first.

import { chromium } from 'playwright-core';

const [url, file, scheme = 'dark'] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: { width: 1600, height: 1000 }, colorScheme: scheme });
page.on('console', (m) => m.type() === 'error' && console.log(m.text(), m.location().url));
page.on('pageerror', (e) => console.log(String(e)));
await page.goto(url);
await page.waitForTimeout(3000);
if (process.env.SCRIPT) console.log(await new Function('page', `return (async () => { ${process.env.SCRIPT} })()`)(page));
await page.waitForTimeout(1500);
await page.screenshot({ path: file });
await browser.close();
