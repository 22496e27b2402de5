// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** What is loaded when it is first shown. */

export { Spreadsheet } from './view';
