// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"strings"
)

// A Class is a kind of users, for metrics, which do not name users.
type Class int

// The classes of users.
const (
	Other Class = iota // people, for the most part
	ServiceAccount
	Node
	classes
)

// String returns the value of the label class.
func (c Class) String() string { return [classes]string{"user", "serviceaccount", "node"}[c] }

// A User is who makes a request.
type User struct {
	Name  string
	Class Class
}

// UserNamed returns the user with a name of the API server's authenticators.
func UserNamed(name string) User {
	switch {
	case strings.HasPrefix(name, "system:serviceaccount:"):
		return User{name, ServiceAccount}
	case strings.HasPrefix(name, "system:node:"):
		return User{name, Node}
	}
	return User{name, Other}
}

type userKey struct{}

// WithUser returns the context of a request of a user.
func WithUser(ctx context.Context, u User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserOf returns the user of a request; false in local mode, which has no users.
func UserOf(ctx context.Context) (User, bool) {
	u, ok := ctx.Value(userKey{}).(User)
	return u, ok
}
