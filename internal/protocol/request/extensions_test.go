// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import "testing"

// TestAcceptedJSON: a client that accepts JSON among other types gets JSON.
func TestAcceptedJSON(t *testing.T) {
	for accept, code := range map[string]int32{
		"": 0, "*/*": 0, "application/json": 0, "application/*": 0, "application/vnd.kubernetes.protobuf,application/json": 0,
		"application/json;as=Table;g=meta.k8s.io;v=v1,application/json": 0, "text/html,*/*;q=0.8": 0,
		"application/json;as=Table;g=meta.k8s.io;v=v1": 400, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1": 406,
		"application/cbor": 406, "text/html": 406,
	} {
		got := int32(0)
		if s := jsonOnly(accept); s != nil {
			got = s.Code
		}
		if got != code {
			t.Errorf("%q: %d, want %d", accept, got, code)
		}
	}
}
