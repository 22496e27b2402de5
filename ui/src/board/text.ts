// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Fonts, text and outlines that everything drawn on a canvas shares. */

export const SANS = 'system-ui, -apple-system, "Segoe UI", Inter, Roboto, sans-serif';
export const MONO = 'ui-monospace, "SF Mono", "JetBrains Mono", Menlo, Consolas, monospace';

export function rounded(context: CanvasRenderingContext2D, x: number, y: number, w: number, h: number, radius: number): void {
  context.beginPath();
  context.roundRect(x, y, w, h, Math.max(0, Math.min(radius, w / 2, h / 2)));
}

/** Shortens a text to a width by leaving out its middle, since names differ at their ends. */
export function clip(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (width <= 0) return '';
  const full = context.measureText(text).width;
  if (full <= width) return text;
  const fit = Math.floor((text.length * width) / full) - 1;
  if (fit < 2) return '';
  const front = Math.ceil(fit * 0.55);
  return `${text.slice(0, front)}…${text.slice(text.length - (fit - front))}`;
}
