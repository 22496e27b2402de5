// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Fingers on a page.

/** How many events a movement consists of. */
const STEPS = 8;

/** A movement of fingers from points to others. */
const movement = (from, to) =>
  Array.from({ length: STEPS }, (_, i) => ({ type: 'move', points: from.map((p, n) => ({ x: p.x + ((to[n].x - p.x) * (i + 1)) / STEPS, y: p.y + ((to[n].y - p.y) * (i + 1)) / STEPS })) }));

/**
 * Gestures made of run(steps), which takes steps of type down, move and up one right after
 * the other: a finger that is held still for half a second means something else. Of several
 * fingers, each has a point.
 */
export const gestures = (run) => ({
  down: (...points) => run([{ type: 'down', points }]),
  move: (from, to) => run(movement(from, to)),
  up: () => run([{ type: 'up', points: [] }]),
  tap: (point) => run([{ type: 'down', points: [point] }, { type: 'up', points: [] }]),
  /** Presses and moves. */
  press: (from, to) => run([{ type: 'down', points: from }, ...movement(from, to)]),
  /** Presses, moves and lifts. */
  drag: (from, to) => run([{ type: 'down', points: from }, ...movement(from, to), { type: 'up', points: [] }]),
});

const EVENTS = { down: 'touchStart', move: 'touchMove', up: 'touchEnd' };

/** The fingers of a page in Chromium that was opened with hasTouch. */
export async function fingersOf(page) {
  const session = await page.context().newCDPSession(page);
  const send = ({ type, points }) => session.send('Input.dispatchTouchEvent', { type: EVENTS[type], touchPoints: points.map(({ x, y }, id) => ({ x, y, id, force: 1 })) });
  return gestures((steps) => Promise.all(steps.map(send)));
}
