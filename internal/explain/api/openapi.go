// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package api

import _ "embed"

// OpenAPI describes /watchkeeper/v1, in JSON.
//
//go:embed openapi.json
var OpenAPI []byte
