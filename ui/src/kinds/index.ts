// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What is loaded when it is first shown. */

export { Kinds } from './view';
export { Opener } from './opener';
export { learn, problem, resources } from './known';
export { knownMoments, Nearest } from '../time/nearest';
