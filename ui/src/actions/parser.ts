// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** The parts of the YAML package that the editor needs. They are loaded with the first editor. */

export { parseDocument, stringify } from 'yaml';
