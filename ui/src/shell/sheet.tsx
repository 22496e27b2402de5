// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Contains the panel at the side. In a narrow window it is a sheet from below (see
 * style/narrow.css), with a handle: half as high as the space between the top bar and the
 * strip, or as high as that.
 */

import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { follow } from '../app/pointer';
import { changes, needs, selection } from '../app/state';
import { recorded } from '../time/playback';

const full = signal(false);

/** A shorter drag is a tap, in pixels. A longer one than this leads to the next height. */
const maxTap = 8;
const minDrag = 48;

/** Closes what the side shows. */
function close(): void {
  selection.value = null;
  changes.value = needs.value = false;
}

export function Sheet({ children }: { children: ComponentChildren }) {
  const element = useRef<HTMLDivElement>(null);
  const open = selection.value !== null || needs.value || (changes.value && recorded.value);
  useEffect(() => {
    if (!open) full.value = false;
  }, [open]);
  return (
    <div class={`sheet ${full.value ? 'full' : ''}`} ref={element}>
      {open && <Handle sheet={element} />}
      {children}
    </div>
  );
}

function Handle({ sheet }: { sheet: { current: HTMLDivElement | null } }) {
  const button = useRef<HTMLButtonElement>(null);
  // The browser may send a click after a drag. A click of a key has no detail.
  const dragged = useRef(false);
  useEffect(() => drag(button.current!, sheet.current!, dragged), []);
  const press = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowUp') full.value = true;
    else if (event.key !== 'ArrowDown') return;
    else if (full.value) full.value = false;
    else close();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="handle">
      <button
        ref={button} class="grip" aria-expanded={full.value} aria-label="Full height" title={full.value ? 'Half the height (↓)' : 'Full height (↑), or close (↓)'}
        onKeyDown={press} onClick={({ detail }) => (detail && dragged.current) || (full.value = !full.value)}
      />
      <button class="quiet" aria-label="Close the panel" title="Close (↓)" onClick={close}>
        <svg width="14" height="14" viewBox="0 0 16 16" aria-hidden="true"><path d="M3.4 2 8 6.6 12.6 2 14 3.4 9.4 8l4.6 4.6-1.4 1.4L8 9.4 3.4 14 2 12.6 6.6 8 2 3.4z" /></svg>
      </button>
    </div>
  );
}

/** The sheet's edge follows the pointer. Released, it has the nearest height, but another one than before. */
function drag(handle: HTMLElement, sheet: HTMLElement, dragged: { current: boolean }): () => void {
  let pointer = 0;
  let from = 0;
  let height = 0;
  const heightAt = (event: PointerEvent): number => height + from - event.clientY;
  const down = (event: PointerEvent): void => {
    if (event.button !== 0 || pointer) return;
    handle.setPointerCapture(event.pointerId);
    pointer = event.pointerId;
    from = event.clientY;
    height = sheet.offsetHeight;
    dragged.current = false;
  };
  const move = (event: PointerEvent): void => {
    if (event.pointerId !== pointer) return;
    dragged.current ||= Math.abs(event.clientY - from) > maxTap;
    if (dragged.current) sheet.style.height = `${Math.max(0, heightAt(event))}px`;
  };
  const up = (event: PointerEvent): void => {
    if (event.pointerId !== pointer) return;
    pointer = 0;
    sheet.style.height = '';
    const by = from - event.clientY;
    if (!dragged.current || event.type === 'pointercancel' || Math.abs(by) < minDrag) return;
    const room = full.value ? height : 2 * height;
    const part = heightAt(event) / room;
    if (by > 0) full.value = true;
    else if (full.value && part > 0.25) full.value = false;
    else close();
  };
  return follow(handle, { down, move, up, leave: () => {}, wheel: () => {} });
}
