// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/**
 * Makes every text and every description that is rendered plain, wherever it comes from. The
 * values of fields, which are edited, and what is copied stay as they are.
 */

import { options } from 'preact';
import { plain } from '../data/plain';

const before = options.vnode;
options.vnode = (vnode) => {
  // The properties of a text are the text.
  const node = vnode as unknown as { type: unknown; props: unknown };
  if (typeof node.props === 'string') node.props = plain(node.props);
  else if (typeof node.type === 'string') {
    const props = node.props as Record<string, unknown>;
    for (const name of ['title', 'aria-label']) if (typeof props[name] === 'string') props[name] = plain(props[name]);
  }
  before?.(vnode);
};
