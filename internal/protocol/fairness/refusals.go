// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

// A bound is one of the bounds of a user, by its label in metrics.
type bound string

const (
	boundLists     bound = "lists"
	boundStreams   bound = "streams"
	boundSelectors bound = "selectors"
	boundBytes     bound = "bytes"
	boundPast      bound = "past"
	// boundQueue is that of a queue of all users, who take turns.
	boundQueue bound = "queue"
	// boundUpstream is the API server's own, by its priority and fairness.
	boundUpstream bound = "api-server"
)

var bounds = []bound{boundLists, boundStreams, boundSelectors, boundBytes, boundPast, boundQueue, boundUpstream}

// refuse counts a refusal, and returns it.
func (u *Users) refuse(user User, b bound, seconds int32, message string) error {
	u.count(user, b, message)
	return &status.Error{Status: status.TooMany(message, seconds)}
}

// RefusedUpstream counts a request of a user that the API server has answered with 429.
func (u *Users) RefusedUpstream(ctx context.Context) {
	if user, ok := UserOf(ctx); ok && u != nil {
		u.count(user, boundUpstream, "the API server has too many requests: see its priority and fairness")
	}
}

// logPause is the time between two lines of the log about a user.
const logPause = time.Minute

// count counts a refusal, and logs the first one of a user and how many came in each minute after
// it.
func (u *Users) count(user User, b bound, message string) {
	u.rejected.WithLabelValues(user.Class.String(), string(b)).Inc()
	u.refusals.Lock()
	defer u.refusals.Unlock()
	if _, logged := u.refused[user.Name]; logged {
		u.refused[user.Name]++
		return
	}
	u.refused[user.Name] = 0
	u.log.Warn("a user gets 429", "user", user.Name, "bound", string(b), "message", message)
	var again func()
	again = func() {
		u.refusals.Lock()
		defer u.refusals.Unlock()
		n := u.refused[user.Name]
		if n == 0 {
			delete(u.refused, user.Name)
			return
		}
		u.refused[user.Name] = 0
		u.log.Warn("a user gets 429", "user", user.Name, "requests", n, "within", logPause)
		time.AfterFunc(logPause, again)
	}
	time.AfterFunc(logPause, again)
}
