// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// What a page looks like, measured in its document: for any browser, so each is one
// expression of JavaScript.

/** The elements that reach beyond the window's width, except what scrolls in itself, and the number of checked elements. */
export const overflowing = `(() => {
  const out = [];
  const all = [...document.body.querySelectorAll('*')];
  for (const element of all) {
    const { left, right, width } = element.getBoundingClientRect();
    if (!width || (left >= -0.5 && right <= innerWidth + 0.5)) continue;
    let around = element.parentElement;
    while (around && !/auto|scroll|hidden/.test(getComputedStyle(around).overflowX)) around = around.parentElement;
    // The body clips too, which would only hide the error.
    if (!around || around === document.body || around === document.documentElement) out.push(element.outerHTML.slice(0, 120) + ' from ' + Math.round(left) + ' to ' + Math.round(right));
  }
  if (document.documentElement.scrollWidth > innerWidth) out.push('the document is ' + document.documentElement.scrollWidth + ' wide');
  return { out, checked: all.length };
})()`;

/**
 * The interactive elements that are smaller than a finger needs (44 × 44 pixels), and the number of
 * checked ones. A point counts only if a press there reaches the element, so one below another is small.
 */
export const smallTargets = `(() => {
  const least = 44;
  const small = [];
  let checked = 0;
  const missedAround = (target, half) => {
    const { left, top, width, height } = target.getBoundingClientRect();
    return [[0, 0], [-half, 0], [half, 0], [0, -half], [0, half]].filter(([dx, dy]) => {
      const hit = document.elementFromPoint(left + width / 2 + dx, top + height / 2 + dy);
      return !hit || !(target.contains(hit) || hit.closest('button, a, label') === target);
    });
  };
  const open = document.querySelector('dialog[open], :popover-open');
  for (const element of (open ?? document).querySelectorAll('a[href], button, input, select, summary, [role=tab], [role=slider], .table .line')) {
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || element.closest('.visually-hidden, .folded .field')) continue;
    if (element.closest('.top') && document.querySelector('.search:not(.folded)') && !element.closest('.field') && innerWidth < 900) continue; // covered by the filter
    const target = element.closest('label') ?? element;
    checked++;
    // What stays in place while a list scrolls may cover it in one of these positions.
    let missed;
    for (const block of ['center', 'start', 'end']) {
      target.scrollIntoView({ block, inline: 'center' });
      missed = missedAround(target, least / 2 - 1);
      if (!missed.length) break;
    }
    const { width, height } = target.getBoundingClientRect();
    if (width < least - 0.5 || height < least - 0.5 || missed.length) small.push(Math.round(width) + ' × ' + Math.round(height) + (missed.length ? ', not at ' + missed.join(' and ') : '') + ': ' + target.outerHTML.slice(0, 140));
  }
  return { small, checked };
})()`;

/** The part of the area between the top bar and the strip where a press reaches the board, from 0 to 1. */
export const boardPart = `(() => {
  const top = document.querySelector('header.top').getBoundingClientRect().bottom;
  const bottom = document.querySelector('footer.time').getBoundingClientRect().top;
  const steps = 40;
  let on = 0;
  for (let i = 0; i < steps; i++) {
    for (let j = 0; j < steps; j++) {
      if (document.elementFromPoint(((i + 0.5) / steps) * innerWidth, top + ((j + 0.5) / steps) * (bottom - top))?.closest('.board')) on++;
    }
  }
  return on / steps / steps;
})()`;
