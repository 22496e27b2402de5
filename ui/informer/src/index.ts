// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

export { connect, Connection } from './connection.js';
export type { ConnectOptions } from './connection.js';
export { Informer } from './informer.js';
export type { BatchOptions, InformerOptions, RowOptions, TableOptions } from './informer.js';
export { StatusError } from './http.js';
export type { Status } from './http.js';
export { rowsOf } from './reflector.js';
export type { ColumnDefinition, Row, RowPage, TableRow } from './reflector.js';
export type * from './events.js';
export type * from './kinds.js';
