// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

// TestImpersonable: nobody is impersonated who would be another user after the way of the
// headers, nor a member of system:masters.
func TestImpersonable(t *testing.T) {
	for _, tt := range []struct {
		user user.DefaultInfo
		want bool
	}{
		{user.DefaultInfo{Name: "a", UID: "1", Groups: []string{"devs", "system:authenticated"}, Extra: map[string][]string{"k": {"v w"}}}, true},
		{user.DefaultInfo{Name: "jürgen"}, true},
		{user.DefaultInfo{Name: "a", Groups: []string{"devs", "system:masters"}}, false},
		{user.DefaultInfo{Name: "a", Groups: []string{"system:masters "}}, false},
		{user.DefaultInfo{Name: "a", Groups: []string{"\tsystem:masters"}}, false},
		{user.DefaultInfo{Name: "admin "}, false},
		{user.DefaultInfo{Name: "admin\r\nImpersonate-Group: system:masters"}, false},
		{user.DefaultInfo{Name: "a\x00"}, false},
		{user.DefaultInfo{Name: "a", UID: " 1"}, false},
		{user.DefaultInfo{Name: "a", Extra: map[string][]string{"k": {"v", "w "}}}, false},
		{user.DefaultInfo{Name: "a", Extra: map[string][]string{"k ": {"v"}}}, false},
	} {
		if got := Impersonable(&tt.user); (got == "") != tt.want {
			t.Errorf("%+v: %q", tt.user, got)
		}
	}
}
