// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

// A request has the form: > METHOD PATH.
func parseRequest(text string, details []statement) ([]option, error) {
	verb, path, ok := strings.Cut(text, " ")
	if !ok || verb != strings.ToUpper(verb) || !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("%q is no METHOD and path", text)
	}
	options := []option{method(verb)}
	for _, d := range details {
		if d.verb == ">" {
			options = append(options, sentHeader(d.text))
			continue
		}
		if expectations[d.verb] == nil {
			continue
		}
		o, err := expectations[d.verb](d.text)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", d.verb, d.text, err)
		}
		options = append(options, o)
	}
	return options, nil
}

// sentHeader adds a header to the request.
func sentHeader(text string) option {
	m := header.FindStringSubmatch(text)
	return func(a *asking) { a.Header[m[1]] = append(a.Header[m[1]], unquoted(m[2])) }
}

func verifyRequest(text string, details []statement, line *int, vars map[string]string) error {
	if !strings.Contains(text, " ") { // that of open has no method
		text = "GET " + text
	}
	for _, d := range details {
		*line = d.line
		if _, err := parseRequest(text, []statement{d}); err != nil {
			return err
		}
		switch d.verb {
		case "keep":
			name, field, _ := strings.Cut(d.text, " ")
			if !variableName.MatchString(name) || field != "continue" && field != "resourceVersion" {
				return fmt.Errorf("keep %s: it takes a variable and a member of a list's metadata", d.text)
			}
			vars[name] = "1"
		case "messages":
			if _, _, err := messages(d.text); err != nil {
				return err
			}
		}
	}
	_, err := parseRequest(text, nil)
	return err
}

// messages parses the number of messages of a WebSocket, and the type of the first.
func messages(text string) (n int, op byte, err error) {
	count, kind, _ := strings.Cut(text, " ")
	op, known := map[string]byte{"text": compare.OpText, "binary": compare.OpBinary, "close": compare.OpClose}[kind]
	n, err = strconv.Atoi(count)
	if err != nil || !known {
		return 0, 0, fmt.Errorf("messages %s: it takes a number and text, binary or close", text)
	}
	return n, op, nil
}

func runRequest(ctx context.Context, x *execution, text string, details []statement) error {
	options, err := parseRequest(text, details)
	if err != nil {
		return err
	}
	verb, path, _ := strings.Cut(text, " ")
	if verb == "WEBSOCKET" {
		return x.webSocket(ctx, path, options[1:], details)
	}
	a, err := x.ask(ctx, path, options...)
	if err != nil {
		return err
	}
	for _, d := range details {
		if d.verb != "keep" {
			continue
		}
		meta, err := listMeta(a)
		if err != nil {
			return err
		}
		name, field, _ := strings.Cut(d.text, " ")
		x.vars[name] = meta.Continue
		if field == "resourceVersion" {
			x.vars[name] = meta.ResourceVersion
		}
	}
	return nil
}

func (x *execution) webSocket(ctx context.Context, path string, options []option, details []statement) error {
	_, all, err := x.socket(ctx, path, options...)
	if err != nil {
		return err
	}
	for _, d := range details {
		if d.verb != "messages" {
			continue
		}
		n, op, err := messages(d.text)
		if err != nil {
			return err
		}
		if len(all) != n || all[0].Op != op {
			return fmt.Errorf("the API server's messages are %v, not %s", all, d.text)
		}
	}
	return nil
}

// negotiate COLLECTION/NAME … answers LIST GET WATCH.
func verifyNegotiate(text string, details []statement, line *int, _ map[string]string) error {
	for _, d := range details {
		*line = d.line
		if d.verb == "answers" && len(strings.Fields(d.text)) == 3 {
			return nil
		}
	}
	return fmt.Errorf("negotiate %s: it takes the answers to a list, a get and a watch", text)
}

func runNegotiate(ctx context.Context, x *execution, text string, details []statement) error {
	var media string
	var want negotiated
	for _, d := range details {
		if d.verb == "answers" {
			types := strings.Fields(d.text)
			want = negotiated{types[0], types[1], types[2]}
		} else {
			media = header.FindStringSubmatch(d.text)[2]
		}
	}
	var todo []func() error
	for object := range strings.FieldsSeq(text) {
		i := strings.LastIndexByte(object, '/')
		todo = append(todo, func() error { return x.negotiate(ctx, object[:i], object[i+1:], media, want) })
	}
	return together(len(todo), todo...)
}

// socket compares a WebSocket: the answer to the handshake, each message and the
// close. It returns what the API server sent.
func (e *Env) socket(ctx context.Context, path string, options ...option) (*compare.Answer, []compare.Message, error) {
	a := newAsking(path, options)
	for {
		last := e.isLast(&a)
		answer, messages, err := e.socketOnce(ctx, &a)
		if err == nil || !a.bounded || last {
			return answer, messages, err
		}
	}
}

func (e *Env) socketOnce(ctx context.Context, a *asking) (*compare.Answer, []compare.Message, error) {
	var want, got *compare.Answer
	var wants, gots []compare.Message
	var err, gotErr error
	var wg sync.WaitGroup
	wg.Go(func() { want, wants, err = e.Want.WebSocket(ctx, a.Request) })
	wg.Go(func() { got, gots, gotErr = e.gotSocket(ctx, a.Request) })
	wg.Wait()
	if err != nil {
		return nil, nil, err
	}
	if err := a.check(want); err != nil {
		return nil, nil, err
	}
	if gotErr != nil {
		return nil, nil, &compare.Difference{Request: a.Path, What: "WebSocket", Want: fmt.Sprint(want.Code), Got: gotErr.Error()}
	}
	masks := e.masksFor(a, want)
	if err := compare.Diff(a.Request, want, got, masks...); err != nil {
		return nil, nil, err
	}
	if len(wants) != len(gots) {
		return nil, nil, &compare.Difference{Request: a.Path, What: "messages", Want: fmt.Sprint(wants), Got: fmt.Sprint(gots)}
	}
	for i := range wants {
		w, g := wants[i].Payload, gots[i].Payload
		for _, m := range masks {
			w, g = m(w), m(g)
		}
		if wants[i].Op != gots[i].Op {
			return nil, nil, &compare.Difference{Request: a.Path, What: fmt.Sprintf("message %d", i), Want: wants[i].String(), Got: gots[i].String()}
		}
		if err := compare.DiffText(fmt.Sprintf("%s: message %d", a.Request, i), w, g); err != nil {
			return nil, nil, err
		}
	}
	return want, wants, nil
}

// gotSocket opens a WebSocket at the gateway. The answer to an accepted handshake does
// not show which server sent it, but the gateway's counter does.
func (e *Env) gotSocket(ctx context.Context, r compare.Request) (*compare.Answer, []compare.Message, error) {
	e.sockets.Lock()
	defer e.sockets.Unlock()
	before, err := e.ownSockets(ctx)
	if err != nil {
		return nil, nil, err
	}
	got, all, err := e.Got.WebSocket(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	after, err := e.ownSockets(ctx)
	if err != nil {
		return nil, nil, err
	}
	e.answers.all.Add(1)
	if after > before || got.Code != http.StatusSwitchingProtocols && !got.FromUpstream() {
		e.answers.own.Add(1)
	}
	return got, all, nil
}

func (e *Env) ownSockets(ctx context.Context) (int, error) {
	if e.Sockets == nil {
		return 0, nil
	}
	return e.Sockets(ctx)
}
