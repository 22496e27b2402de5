// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Pauses that grow from 0.2 s to 8 s; half of each is random. */
export class Backoff {
  private n = 0;

  next(): number {
    const pause = Math.min(200 * 2 ** this.n++, 8000);
    return pause / 2 + (Math.random() * pause) / 2;
  }

  reset(): void {
    this.n = 0;
  }
}

/** Pauses that `wake` ends early. */
export class Pauses {
  private readonly all = new Set<() => void>();

  /** Resolves after ms milliseconds, or on wake, or when signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const over = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', over);
        this.all.delete(over);
        resolve();
      };
      const timer = setTimeout(over, ms);
      this.all.add(over);
      signal.addEventListener('abort', over);
      if (signal.aborted) over();
    });
  }

  wake(): void {
    for (const over of [...this.all]) over();
  }
}
