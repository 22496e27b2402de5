// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// WCAG 2.2 A and AA, as far as axe can check it.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { until } from './cluster.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** What axe checks: everything with dark colours, and with light ones what depends on colours. */
const CHECKS = { dark: { type: 'tag', values: TAGS }, light: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } };

/** The violations that axe reports, in short, with dark and with light colours. */
export async function violations(page) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe);
  const found = {};
  for (const [colorScheme, runOnly] of Object.entries(CHECKS)) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await until(colorScheme, () => page.evaluate((scheme) => document.documentElement.dataset.theme === scheme, colorScheme));
    const { violations } = await page.evaluate((runOnly) => window.axe.run(document, { runOnly, resultTypes: ['violations'] }), runOnly);
    found[colorScheme] = violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary.split('\n').slice(1, 2).join().trim()}`));
  }
  return found;
}
