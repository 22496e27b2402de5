// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Fingers on a page in Chromium, through its DevTools protocol.

/** How many events a movement consists of. */
const STEPS = 8;

/** The fingers of a page that was opened with hasTouch. */
export async function fingersOf(page) {
  const session = await page.context().newCDPSession(page);
  const send = (type, points) => session.send('Input.dispatchTouchEvent', { type, touchPoints: points.map(({ x, y }, id) => ({ x, y, id, force: 1 })) });
  const fingers = {
    /** Presses fingers at these points. */
    down: (...points) => send('touchStart', points),
    /** Moves the pressed fingers from points to others. */
    async move(from, to) {
      for (let i = 1; i <= STEPS; i++) await send('touchMove', from.map((p, n) => ({ x: p.x + ((to[n].x - p.x) * i) / STEPS, y: p.y + ((to[n].y - p.y) * i) / STEPS })));
    },
    /** Lifts all fingers. */
    up: () => send('touchEnd', []),
    async tap(point) {
      await fingers.down(point);
      await fingers.up();
    },
    /** Moves fingers from points to others, and lifts them. */
    async drag(from, to) {
      await fingers.down(...from);
      await fingers.move(from, to);
      await fingers.up();
    },
  };
  return fingers;
}
