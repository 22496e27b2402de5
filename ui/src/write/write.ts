// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Writes to the cluster, with the rights of the reader. */

import { stringify } from '@watchkeeper/informer/json';
import { ApiError, apiError, apiURL, getJSON, jsonOf, request } from '../app/api';
import { session } from '../app/login';
import { bodyOf, patchOf, pathText, same, valueAt, type Edit } from './patch';
import { warningsOf } from './warnings';

/** An object of the API, of any kind. */
export interface Stored {
  apiVersion?: string;
  kind?: string;
  metadata: { name: string; namespace?: string; uid: string; resourceVersion: string; [field: string]: unknown };
  [field: string]: unknown;
}

/** What a write needs. */
export interface Target {
  /** The API path of the object. */
  path: string;
  /** Another object of the same name is not changed, and without a uid none is. */
  uid: string;
  /** The field manager, by which managedFields tell who wrote what. */
  manager: string;
}

/** A write that somebody else's change prevents. Nothing was written. */
export class Conflict extends Error {
  constructor(readonly edits: { edit: Edit; found: unknown }[], message: string) {
    super(message);
  }
}

const shown = (value: unknown): string => {
  const text = value === undefined ? 'absent' : stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
};

/** What the API server answered to a write. */
export interface Written {
  object: Stored;
  /** Its warnings, such as of a deprecated field. */
  warnings: string[];
}

/** Changes values of an object, or only asks the API server whether it would (`dryRun`). Throws a Conflict or an ApiError. */
export const write = async (target: Target, edits: Edit[], dryRun = false, signal?: AbortSignal): Promise<Stored> => (await send(target, edits, { dryRun, signal })).object;

/** The same, with the warnings. `current` is the object, if it was just read. */
export async function send(target: Target, edits: Edit[], { dryRun = false, signal, current }: { dryRun?: boolean; signal?: AbortSignal; current?: Stored } = {}): Promise<Written> {
  if (!target.uid) throw new Error('An object without a uid is not changed.');
  // A missing parent has to be added, which only the object tells.
  const object = edits.some(({ path, old }) => old === undefined && path.length > 1) ? (current ?? (await getJSON<Stored>(target.path, '', signal))) : undefined;
  const response = await request(apiURL(target.path, '', { fieldManager: target.manager, fieldValidation: 'Strict', ...(dryRun && { dryRun: 'All' }) }), {
    method: 'PATCH', headers: { 'content-type': 'application/json-patch+json', accept: 'application/json' }, body: bodyOf(patchOf(edits, object, target.uid)), signal,
  });
  if (response.ok) return { object: await jsonOf<Stored>(response), warnings: warningsOf(response.headers.get('warning')) };
  const error = await apiError(response);
  // The API server refuses a failed `test` as invalid, or as a conflict with what it has just stored.
  if (error.code === 422 || error.code === 409) await findConflict(target, edits, error, signal);
  throw error;
}

/** All that the API server says about a `test` of a JSON Patch that failed. */
const refusedTest = /^the server rejected our request due to an error in our request$/;

/** Throws a Conflict if an edited value is not the one that the reader saw. */
async function findConflict(target: Target, edits: Edit[], error: ApiError, signal?: AbortSignal): Promise<void> {
  const current = await getJSON<Stored>(target.path, '', signal);
  if (current.metadata.uid !== target.uid) throw new Conflict([], 'The object was deleted, and another one has its name.');
  const others = edits.map((edit) => ({ edit, found: valueAt(current, edit.path) })).filter(({ edit, found }) => !same(edit.old, found));
  if (others.length > 0) {
    throw new Conflict(others, others.map(({ edit, found }) => `${pathText(edit.path)} was changed meanwhile: it is ${shown(found)}, not ${shown(edit.old)}.`).join(' '));
  }
  const moved = edits.flatMap(({ beside = [] }) => beside).find(({ path, value }) => !same(valueAt(current, path), value));
  if (moved) throw new Conflict([], `${pathText(moved.path)} was changed meanwhile: it is ${shown(valueAt(current, moved.path))}, not ${shown(moved.value)}.`);
  if (error.code === 409) throw new Conflict([], error.message);
  if (refusedTest.test(error.message)) throw new ApiError(error.code, 'The API server refuses the change as if a value had been changed meanwhile, but none was. It may keep a number in another form, such as 1.0: kubectl edit can change that.');
}

/** What a review asks: may the reader do this? */
export interface Verb {
  verb: string;
  group: string;
  resource: string;
  subresource?: string;
  namespace?: string;
  name?: string;
}

/** Decisions are used this long, in milliseconds. */
const trusted = 10_000;
const decisions = new Map<string, { until: number; answer: Promise<{ allowed: boolean; reason: string }> }>();

/** Asks whether the reader may do something now, and why not (SelfSubjectAccessReview). The gateway answers for itself if it is read-only. */
export function allowed(verb: Verb): Promise<{ allowed: boolean; reason: string }> {
  const key = `${session.peek().number} ${JSON.stringify(verb)}`;
  const known = decisions.get(key);
  if (known && known.until > Date.now()) return known.answer;
  const answer = review(verb);
  decisions.set(key, { until: Date.now() + trusted, answer });
  answer.catch(() => decisions.delete(key));
  return answer;
}

async function review(resourceAttributes: Verb): Promise<{ allowed: boolean; reason: string }> {
  const response = await request(apiURL('apis/authorization.k8s.io/v1/selfsubjectaccessreviews'), {
    method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec: { resourceAttributes } }),
  });
  if (!response.ok) throw await apiError(response);
  const { status } = await jsonOf<{ status: { allowed: boolean; reason?: string } }>(response);
  return { allowed: status.allowed, reason: status.reason ?? '' };
}
