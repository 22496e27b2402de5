// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Paths of the API. The page has them with the names as they are; only a URL has them encoded. */

/** An object's path, taken apart. */
export interface Place {
  group: string;
  version: string;
  resource: string;
  namespace: string;
  name: string;
}

const WORD = '[a-z0-9][a-z0-9.-]*';
/** As Kubernetes validates them: a namespace is a DNS label, and a name is at least a segment of a path (ValidatePathSegmentName). */
const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const SEGMENT = '(?!\\.{1,2}$)[^/%]+';
const OBJECT = new RegExp(`^/(?:api|apis/(${WORD}))/(${WORD})/(?:namespaces/(${LABEL})/)?(${WORD})/(${SEGMENT})$`);

/** Takes the API path of an object apart; null for another path, also for one whose names cannot be. */
export function placeOf(path: string): Place | null {
  const found = OBJECT.exec(path);
  if (!found) return null;
  const [, group = '', version, namespace = '', resource, name] = found;
  return { group, version, resource, namespace, name };
}

/** A text as one segment of a URL's path: nothing in it ends the path, and it leads to no other one. */
export function segment(text: string): string {
  if (/^\.{0,2}$/.test(text)) throw new Error(`“${text}” cannot be part of an API path.`);
  return encodeURIComponent(text).replaceAll('%3A', ':');
}

/** A path as a URL has it. */
export const encoded = (path: string): string => path.split('/').map(segment).join('/');
