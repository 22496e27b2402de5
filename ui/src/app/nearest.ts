// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The word of a list that was probably meant by another; empty if none is similar. */
export function nearest(word: string, words: readonly string[]): string {
  let best = '';
  // Up to a third of the letters may be wrong, and the end may be missing.
  let least = Math.ceil(word.length / 3) + 0.5;
  for (const one of words) {
    const wrong = word && one.startsWith(word) ? 0.5 : edits(word, one);
    if (wrong < least) [best, least] = [one, wrong];
  }
  return best;
}

/** How many letters have to be inserted, deleted, replaced, or swapped with the next one. */
function edits(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let n = Math.min(row[j - 1] + 1, rows[i - 1][j] + 1, rows[i - 1][j - 1] + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) n = Math.min(n, rows[i - 2][j - 2] + 1);
      row.push(n);
    }
    rows.push(row);
  }
  return rows[a.length][b.length];
}
