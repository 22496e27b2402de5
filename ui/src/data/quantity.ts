// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Parses Kubernetes quantities, and formats numbers and ages. */

const SUFFIX: Record<string, number> = {
  '': 1, n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};

/** Parsed quantities: many Pods have the same ones. */
const read = new Map<string, number>();

/** The value of a quantity such as `100m`, `1.5Gi` or `2e3`; 0 if it is invalid. */
export function quantity(text: string | number | undefined): number {
  if (typeof text === 'number') return text;
  if (!text) return 0;
  let value = read.get(text);
  if (value !== undefined) return value;
  const match = /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)([a-zA-Z]*)$/.exec(text);
  value = match ? Number(match[1]) * (SUFFIX[match[2]] ?? 0) : 0;
  if (read.size >= 1000) read.clear();
  read.set(text, value);
  return value;
}

/** CPU given in thousandths of a core: `250m`, `1.5`, `48`. */
export const cpuText = (milli: number): string => (milli < 1000 ? `${Math.round(milli)}m` : String(Math.round(milli / 100) / 10));

/** Memory given in KiB: `64Mi`, `1.5Gi`. */
export function memoryText(kib: number): string {
  for (const [unit, size] of [['Ti', 2 ** 30], ['Gi', 2 ** 20], ['Mi', 2 ** 10]] as const) {
    if (kib >= size) return `${Math.round((kib / size) * 10) / 10}${unit}`;
  }
  return `${kib}Ki`;
}

/** A duration in seconds as kubectl prints it, at most two units: `42s`, `4m10s`, `3h5m`, `12d`. */
export function age(span: number): string {
  const s = Math.max(0, Math.floor(span));
  if (s < 120) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 10) return s % 60 ? `${m}m${s % 60}s` : `${m}m`;
  if (m < 180) return `${m}m`;
  const h = Math.floor(m / 60);
  if (h < 8) return m % 60 ? `${h}h${m % 60}m` : `${h}h`;
  if (h < 48) return `${h}h`;
  const d = Math.floor(h / 24);
  return d < 365 * 2 ? `${d}d` : `${Math.floor(d / 365)}y`;
}

/** A number with its noun: `1 pod`, `20,000 pods`. */
export const count = (n: number, one: string, many = `${one}s`): string => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;

/** A message as a sentence: with a capital and a full stop. */
export const sentence = (text: string): string => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
