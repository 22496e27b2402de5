// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Reads YAML that was typed, as kubectl does: the gateway has kubectl's parser. */

import { apiError, ApiError, extension, jsonOf, request } from '../app/api';
import { sentence } from '../data/quantity';

/** Reads a text. Throws an Error that says what is wrong with it, and where. */
export async function readYAML(text: string, signal: AbortSignal): Promise<unknown> {
  const response = await request(new URL('yaml', extension()), { method: 'POST', headers: { 'content-type': 'application/yaml', accept: 'application/json' }, body: text, signal });
  if (response.ok) return jsonOf<unknown>(response);
  const { code, message } = await apiError(response);
  throw new ApiError(code, sentence(message));
}
