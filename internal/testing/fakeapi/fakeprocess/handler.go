// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package fakeprocess runs a fakeapi.Server with a population in a separate process, so
// that a benchmark measures only its client. Commands are requests:
//
//	POST /bench/events?n=100000   changes n Pods at once
//	                 &rate=1000   or rate of them in a second; the response comes after the last
//	POST /bench/expire            every watch ends with 410; nothing changes until the next watch
//	GET  /bench/lists             the number of lists so far, except those with limit=1
//
// The response to the first two is a fakeapi.Mark: a client that has received this
// change has all of them.
package fakeprocess

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// Handler serves a server and the commands.
func Handler(s *fakeapi.Server) http.Handler {
	var lists atomic.Int64
	s.Control(func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
		if r.Verb == "list" && r.Query.Get("limit") != "1" {
			lists.Add(1)
		}
		next(w)
	})
	mux := http.NewServeMux()
	mux.Handle("/", s)
	mux.HandleFunc("POST /bench/events", func(w http.ResponseWriter, r *http.Request) { serveEvents(s, w, r) })
	mux.HandleFunc("POST /bench/expire", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.ExpireWithMark()) })
	mux.HandleFunc("GET /bench/lists", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, lists.Load()) })
	return mux
}

func serveEvents(s *fakeapi.Server, w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.FormValue("n"))
	if err != nil || n < 1 {
		http.Error(w, "n: the number of events is missing", http.StatusBadRequest)
		return
	}
	if r.FormValue("rate") == "" {
		writeJSON(w, s.Change(n))
		return
	}
	rate, err := strconv.ParseFloat(r.FormValue("rate"), 64)
	if err != nil || rate <= 0 {
		http.Error(w, "rate: the number of events in a second is wrong", http.StatusBadRequest)
		return
	}
	if last, err := s.ChangeAtRate(r.Context(), n, rate); err == nil {
		writeJSON(w, last)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // fails if the client has gone
}
