// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

import { get, lines, StatusError, type Source } from './http.js';

/** An event as the server sends it. */
export interface WireEvent {
  type: string;
  object: any;
  /** The index of its watch, if a response carries several. */
  watch?: number;
}

/** A watch for a channel to carry. */
export interface Watch {
  /** Its path and query, starting at its current RV. doubtful: the server may have been restored since the last event. */
  path(timeoutSeconds: number, doubtful: boolean): string;
  /** The server has answered; events follow. doubtful is that of the path. */
  opened(doubtful: boolean): void;
  /** Takes an event. An exception ends the watch. */
  take(event: WireEvent): void;
  /** The events received so far have all been taken. */
  flush(): void;
  /** Nothing was received since `lastReceived`, and a second request failed. */
  unreachable(error: unknown, lastReceived: number): void;
}

/** Thrown if the server does not support several watches on one response. */
export class Unsupported extends Error {}

/** How long to wait for the response to a watch, in milliseconds. */
const answerTimeout = 30_000;
/** How long after its timeoutSeconds a watch may end, in milliseconds. */
const endGrace = 10_000;

/** A watch on a channel. */
interface Member {
  watch: Watch;
  settle(error?: unknown): void;
  done: boolean;
  /** Another watch broke off since this one was opened: this one may end in the same way. */
  doubtful: boolean;
}

/** A request that carries watches, and its response. */
interface Line {
  members: Member[];
  abort: AbortController;
}

/**
 * A channel carries watches on one response. When a watch joins, and after a
 * silence, the channel sends a second request with all watches at their current
 * RVs. Once that is answered, it replaces the first one. So no event is missed,
 * and each watch drops the events that it receives twice.
 */
export class Channel {
  /** When something was last received, in milliseconds. */
  lastReceived = 0;
  private readonly members = new Set<Member>();
  private current?: Line;
  private next?: Line;
  private opening?: ReturnType<typeof setTimeout>;
  private watchdog?: ReturnType<typeof setTimeout>;
  private requested = 0;

  /**
   * url builds the URL from the watches' paths. With shared, each event has the
   * index of its watch. answered is called when the server has answered.
   */
  constructor(
    private readonly source: Source,
    private readonly url: (paths: string[]) => string,
    private readonly shared: boolean,
    private silence: number,
    private readonly answered: () => void,
  ) {}

  /** Carries a watch until it ends. It resolves if the server ended it normally. */
  join(watch: Watch, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        member.settle();
        if (this.shared) this.open(1000); // without it, so that the server stops sending it
      };
      const member: Member = {
        watch,
        done: false,
        doubtful: false,
        settle: (error) => {
          if (member.done) return;
          member.done = true;
          signal.removeEventListener('abort', leave);
          this.members.delete(member);
          if (this.members.size === 0) this.close();
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      this.members.add(member);
      signal.addEventListener('abort', leave);
      if (signal.aborted) leave();
      else this.open(this.shared ? 25 : 0);
    });
  }

  /** Sends a new request, unless something was received just now. */
  check(): void {
    if (this.current && Date.now() - this.lastReceived > 5000) this.open(0);
  }

  /** Opens a line in ms milliseconds, so that watches that join together share it. */
  private open(ms: number): void {
    if (this.opening !== undefined || this.members.size === 0) return;
    this.opening = setTimeout(() => {
      this.opening = undefined;
      void this.run();
    }, ms);
  }

  private async run(): Promise<void> {
    const line: Line = { members: [...this.members], abort: new AbortController() };
    this.next?.abort.abort();
    this.next = line;
    this.requested = Date.now();
    const silent = this.current !== undefined && Date.now() - this.lastReceived >= this.silence;
    const seconds = 300 + Math.floor(Math.random() * 300);
    const limit = (ms: number, why: string) => setTimeout(() => line.abort.abort(new Error(why)), ms);
    let timer = limit(silent ? Math.min(this.silence / 3, answerTimeout) : answerTimeout, 'no response');
    let error: unknown;
    try {
      const doubtful = line.members.map((member) => silent || member.doubtful);
      const url = this.url(line.members.map(({ watch }, i) => watch.path(seconds, doubtful[i]!)));
      const response = await get(this.source, url, line.abort.signal).catch((why) => {
        throw this.shared && why instanceof StatusError && why.refusal && why.code !== 401 ? new Unsupported() : why;
      });
      line.abort.signal.throwIfAborted();
      clearTimeout(timer);
      timer = limit(seconds * 1000 + endGrace, 'the server did not end the watch after timeoutSeconds');
      this.current?.abort.abort();
      this.current = line;
      this.next = undefined;
      const heartbeat = response.headers.get('Watchkeeper-Heartbeat'); // in seconds
      if (heartbeat) this.silence = Math.min(this.silence, 3000 * +heartbeat);
      this.lastReceived = Date.now();
      this.watchSilence();
      line.members.forEach((member, i) => {
        member.doubtful = false;
        if (!member.done) member.watch.opened(doubtful[i]!);
      });
      this.answered();
      for await (const batch of lines(response.body!, line.abort.signal)) {
        this.lastReceived = Date.now();
        for (const text of batch) this.take(line, text);
        for (const member of line.members) if (!member.done) member.watch.flush();
      }
      if (this.shared) error = new Error('the connection was closed before the watches ended');
    } catch (why) {
      error = why ?? new Error('the connection failed');
    }
    clearTimeout(timer);
    this.over(line, error);
  }

  private take(line: Line, text: string): void {
    if (line !== this.current) return; // it has been replaced
    const event: WireEvent = this.source.parse(text);
    const member = line.members[event.watch ?? 0];
    if (!member || member.done) return;
    if (event.type === 'END') return member.settle();
    try {
      member.watch.take(event);
    } catch (error) {
      member.settle(error);
      this.doubt(error);
    }
  }

  /**
   * A watch broke off. If the API server stopped, the others will, too. A request that
   * replaces their response hides that from them, so it has to prove that nothing changed.
   */
  private doubt(error: unknown): void {
    if (error instanceof StatusError && error.refusal) return;
    for (const member of this.members) member.doubtful = true;
    if (this.next) void this.run();
  }

  private over(line: Line, error: unknown): void {
    if (line !== this.current && line !== this.next) return; // it has been replaced
    line.abort.abort();
    if (this.next === line) this.next = undefined;
    if (this.current === line) this.current = undefined;
    for (const member of line.members) {
      if (member.done || this.next?.members.includes(member)) continue;
      if (this.current?.members.includes(member)) member.watch.unreachable(error, this.lastReceived);
      else member.settle(error);
    }
  }

  /** Sends a new request after a silence. */
  private watchSilence(): void {
    clearTimeout(this.watchdog);
    const due = Math.max(this.lastReceived + this.silence, this.requested + Math.min(this.silence, answerTimeout));
    this.watchdog = setTimeout(
      () => {
        if (Date.now() - this.lastReceived >= this.silence && !this.next) void this.run();
        this.watchSilence();
      },
      Math.max(due - Date.now(), 10),
    );
  }

  private close(): void {
    clearTimeout(this.watchdog);
    clearTimeout(this.opening);
    this.opening = undefined;
    this.current?.abort.abort();
    this.next?.abort.abort();
    this.current = this.next = undefined;
  }
}
