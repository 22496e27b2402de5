// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { get, lines, StatusError, type Source } from './http.js';

/** An event as it comes. */
export interface WireEvent {
  type: string;
  object: any;
  /** Its watch, where a response carries several. */
  watch?: number;
}

/** A watch that is to be carried. */
export interface Watch {
  /** Its path and query, from where it is now. */
  path(timeoutSeconds: number): string;
  /** The API server has answered: what comes now is news. */
  opened(): void;
  /** Takes an event. What it throws ends the watch. */
  take(event: WireEvent): void;
  /** No more events have come so far. */
  flush(): void;
  /** Nothing has come for too long, and asking again has failed. */
  doubt(error: unknown, heard: number): void;
}

/** Thrown where several watches on one response are not to be had. */
export class Unsupported extends Error {}

/** How long an answer to a watch is waited for, in milliseconds. */
const answerTime = 30_000;
/** How long past its timeoutSeconds a watch is waited for. */
const overtime = 10_000;

/** The place of a watch in a channel. */
interface Seat {
  watch: Watch;
  settle(error?: unknown): void;
  done: boolean;
}

/** One response, or the wait for it. */
interface Line {
  seats: Seat[];
  abort: AbortController;
}

/**
 * A channel carries watches on one response. When one joins, and when nothing
 * has come for too long, a second response is asked for with all watches as they
 * are; when that is there, it takes the place of the first one. So nothing is
 * missed, and each watch drops what it is told twice.
 */
export class Channel {
  /** When something came last. */
  heard = 0;
  private readonly seats = new Set<Seat>();
  private current?: Line;
  private next?: Line;
  private gathering?: ReturnType<typeof setTimeout>;
  private watchdog?: ReturnType<typeof setTimeout>;
  private asked = 0;

  /**
   * url makes one of the watches' paths. shared tells that the events are
   * numbered. answered is called when the server has answered.
   */
  constructor(
    private readonly source: Source,
    private readonly url: (paths: string[]) => string,
    private readonly shared: boolean,
    private readonly silence: number,
    private readonly answered: () => void,
  ) {}

  /** Carries a watch until it ends. It resolves where that is as it should be. */
  join(watch: Watch, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        seat.settle();
        if (this.shared) this.open(1000); // the server need not go on with it
      };
      const seat: Seat = {
        watch,
        done: false,
        settle: (error) => {
          if (seat.done) return;
          seat.done = true;
          signal.removeEventListener('abort', leave);
          this.seats.delete(seat);
          if (this.seats.size === 0) this.close();
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      this.seats.add(seat);
      signal.addEventListener('abort', leave);
      if (signal.aborted) leave();
      else this.open(this.shared ? 25 : 0);
    });
  }

  /** Asks again, unless something came just now. */
  check(): void {
    if (this.current && Date.now() - this.heard > 5000) this.open(0);
  }

  /** Opens a line in ms milliseconds, so that those who come together share it. */
  private open(ms: number): void {
    if (this.gathering !== undefined || this.seats.size === 0) return;
    this.gathering = setTimeout(() => {
      this.gathering = undefined;
      void this.run();
    }, ms);
  }

  private async run(): Promise<void> {
    const line: Line = { seats: [...this.seats], abort: new AbortController() };
    this.next?.abort.abort();
    this.next = line;
    this.asked = Date.now();
    const seconds = 300 + Math.floor(Math.random() * 300);
    const limit = (ms: number, why: string) => setTimeout(() => line.abort.abort(new Error(why)), ms);
    let timer = limit(answerTime, 'no answer');
    let error: unknown;
    try {
      const url = this.url(line.seats.map(({ watch }) => watch.path(seconds)));
      const response = await get(this.source, url, line.abort.signal).catch((why) => {
        throw this.shared && why instanceof StatusError && why.refusal && why.code !== 401 ? new Unsupported() : why;
      });
      line.abort.signal.throwIfAborted();
      clearTimeout(timer);
      timer = limit(seconds * 1000 + overtime, 'the server did not end the watch in time');
      this.current?.abort.abort();
      this.current = line;
      this.next = undefined;
      this.heard = Date.now();
      this.guard();
      for (const seat of line.seats) if (!seat.done) seat.watch.opened();
      this.answered();
      for await (const batch of lines(response.body!, line.abort.signal)) {
        this.heard = Date.now();
        for (const text of batch) this.take(line, text);
        for (const seat of line.seats) if (!seat.done) seat.watch.flush();
      }
      if (this.shared) error = new Error('the connection was cut');
    } catch (why) {
      error = why ?? new Error('the connection failed');
    }
    clearTimeout(timer);
    this.over(line, error);
  }

  private take(line: Line, text: string): void {
    if (line !== this.current) return; // another has taken its place
    const event: WireEvent = JSON.parse(text);
    const seat = line.seats[event.watch ?? 0];
    if (!seat || seat.done) return;
    if (event.type === 'END') return seat.settle();
    try {
      seat.watch.take(event);
    } catch (error) {
      seat.settle(error);
    }
  }

  private over(line: Line, error: unknown): void {
    if (line !== this.current && line !== this.next) return; // another has taken its place
    line.abort.abort();
    if (this.next === line) this.next = undefined;
    if (this.current === line) this.current = undefined;
    for (const seat of line.seats) {
      if (seat.done || this.next?.seats.includes(seat)) continue;
      if (this.current?.seats.includes(seat)) seat.watch.doubt(error, this.heard);
      else seat.settle(error);
    }
  }

  /** Sees to it that a channel that says nothing is asked again. */
  private guard(): void {
    clearTimeout(this.watchdog);
    const due = Math.max(this.heard + this.silence, this.asked + Math.min(this.silence, answerTime));
    this.watchdog = setTimeout(
      () => {
        if (Date.now() - this.heard >= this.silence && !this.next) void this.run();
        this.guard();
      },
      Math.max(due - Date.now(), 10),
    );
  }

  private close(): void {
    clearTimeout(this.watchdog);
    clearTimeout(this.gathering);
    this.gathering = undefined;
    this.current?.abort.abort();
    this.next?.abort.abort();
    this.current = this.next = undefined;
  }
}
