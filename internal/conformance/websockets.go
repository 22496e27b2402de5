// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var webSocketRules = append(rules("§5",
	WebSocketInJSON, WebSocketInProtobuf, WebSocketAsTable, WebSocketWithoutOrigin, WebSocketSubprotocols,
	WebSocketBrowserToken, WebSocketCloses, WebSocketOfList, WebSocketRefusals,
), Rule{Section: "§5", Check: WebSocketOfAnotherOrigin, Differs: 9})

// socket compares a WebSocket: the answer to the handshake, each message and
// how it is closed. The API server's part is returned.
func (e *Env) socket(ctx context.Context, path string, options ...option) (*compare.Answer, []compare.Message, error) {
	a := asking{Request: compare.Request{Path: path, Header: http.Header{"Origin": {compare.OwnOrigin}}}}
	for _, o := range options {
		o(&a)
	}
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
	for _, check := range a.checks {
		if err := check(want); err != nil {
			return nil, nil, fmt.Errorf("%s: the API server: %w\n  it is %d %v %s", a.Request, err, want.Code, want.Header, want.Body)
		}
	}
	if gotErr != nil {
		return nil, nil, &compare.Difference{Request: path, What: "WebSocket", Want: fmt.Sprint(want.Code), Got: gotErr.Error()}
	}
	if err := compare.Diff(a.Request, want, got, a.masks...); err != nil {
		return nil, nil, err
	}
	if len(wants) != len(gots) {
		return nil, nil, &compare.Difference{Request: path, What: "messages", Want: fmt.Sprint(wants), Got: fmt.Sprint(gots)}
	}
	for i := range wants {
		w, g := wants[i].Payload, gots[i].Payload
		for _, m := range a.masks {
			w, g = m(w), m(g)
		}
		if wants[i].Op != gots[i].Op {
			return nil, nil, &compare.Difference{Request: path, What: fmt.Sprintf("message %d", i), Want: wants[i].String(), Got: gots[i].String()}
		}
		if err := compare.DiffText(fmt.Sprintf("%s: message %d", a.Request, i), w, g); err != nil {
			return nil, nil, err
		}
	}
	return want, wants, nil
}

// gotSocket asks the gateway. An accepted WebSocket does not say who answered
// it: that is counted.
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
	e.asked.answers.Add(1)
	if after > before || got.Code != http.StatusSwitchingProtocols && !got.FromUpstream() {
		e.asked.own.Add(1)
	}
	return got, all, nil
}

func (e *Env) ownSockets(ctx context.Context) (int, error) {
	if e.Sockets == nil {
		return 0, nil
	}
	return e.Sockets(ctx)
}

const socketWatch = "?watch=1&timeoutSeconds=1&resourceVersion=0"

// WebSocketInJSON: §5, a watch over a WebSocket has one text message per event.
func WebSocketInJSON(ctx context.Context, e *Env) error {
	for path, n := range map[string]int{configMaps: len(still), gadgets: 2} {
		if _, err := e.at(ctx, path, 0); err != nil {
			return err
		}
		_, all, err := e.socket(ctx, path+socketWatch, code(101), sends("Upgrade", "websocket"))
		if err != nil {
			return err
		}
		if len(all) != n+1 || all[0].Op != compare.OpText {
			return fmt.Errorf("the API server: %v", all)
		}
	}
	return nil
}

// WebSocketInProtobuf: §5, in protobuf it is one binary message per event,
// without a length.
func WebSocketInProtobuf(ctx context.Context, e *Env) error {
	if _, err := e.at(ctx, configMaps, 0); err != nil {
		return err
	}
	_, all, err := e.socket(ctx, configMaps+socketWatch, accept(compare.Protobuf), code(101))
	if err != nil {
		return err
	}
	if len(all) != len(still)+1 || all[0].Op != compare.OpBinary || all[0].Payload[0] == 0 {
		return fmt.Errorf("the API server: %v", all)
	}
	return nil
}

// WebSocketAsTable: §5, views work here, too.
func WebSocketAsTable(ctx context.Context, e *Env) error {
	if _, err := e.at(ctx, configMaps, 0); err != nil {
		return err
	}
	var errs []error
	for _, media := range []string{tableV1, metadata} {
		_, all, err := e.socket(ctx, configMaps+socketWatch, accept(media), mask(ages), code(101))
		if err == nil && len(all) != len(still)+1 {
			err = fmt.Errorf("the API server: %v", all)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// WebSocketWithoutOrigin: §5, without an Origin it is refused.
func WebSocketWithoutOrigin(ctx context.Context, e *Env) error {
	_, _, err := e.socket(ctx, configMaps+socketWatch, func(a *asking) { a.Header.Del("Origin") }, code(403))
	return err
}

// WebSocketOfAnotherOrigin: §5, the API server does not look at what the Origin
// is.
func WebSocketOfAnotherOrigin(ctx context.Context, e *Env) error {
	_, _, err := e.socket(ctx, configMaps+socketWatch, header("Origin", "https://example.com"), code(101))
	return err
}

// WebSocketSubprotocols: §5, a subprotocol that was asked for is echoed; of
// several that are unknown none can be chosen.
func WebSocketSubprotocols(ctx context.Context, e *Env) error {
	var errs []error
	for offered, want := range map[string]int{"binary.k8s.io": 101, "base64.binary.k8s.io": 101, "foo": 101, "foo, bar": 400} {
		_, _, err := e.socket(ctx, configMaps+socketWatch, header("Sec-Websocket-Protocol", offered), code(want))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// WebSocketBrowserToken: §5, a browser may send its token as a subprotocol,
// with another one.
func WebSocketBrowserToken(ctx context.Context, e *Env) error {
	offer := func(token string) string {
		return "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token))
	}
	const one = configMaps + "?watch=1&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name=cm-1"
	nobody := as(compare.AsNobody)
	_, all, err := e.socket(ctx, one, nobody, header("Sec-Websocket-Protocol", offer(e.token)+", foo"), code(101), sends("Sec-Websocket-Protocol", "foo"))
	if err != nil {
		return err
	}
	if len(all) != 2 {
		return fmt.Errorf("the API server: %v", all)
	}
	var errs []error
	for protocols, want := range map[string]int{
		offer("garbage") + ", foo": 401,
		offer(e.token) + ", foo":   403,
	} {
		_, _, err := e.socket(ctx, configMaps+socketWatch, nobody, header("Sec-Websocket-Protocol", protocols), code(want))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// WebSocketCloses: §5, when its time is up it is closed with 1000.
func WebSocketCloses(ctx context.Context, e *Env) error {
	if _, err := e.at(ctx, configMaps, 0); err != nil {
		return err
	}
	_, all, err := e.socket(ctx, configMaps+socketWatch+"&labelSelector=none", code(101))
	if err != nil {
		return err
	}
	if len(all) != 1 || all[0].Op != compare.OpClose {
		return fmt.Errorf("the API server: %v", all)
	}
	return nil
}

// WebSocketOfList: §5, what is no watch is answered as ever.
func WebSocketOfList(ctx context.Context, e *Env) error {
	_, _, err := e.socket(ctx, configMaps+"/cm-1"+anyVersion, code(200), kind("ConfigMap"))
	return err
}

// WebSocketRefusals: §5, a watch that is refused is so before the upgrade.
func WebSocketRefusals(ctx context.Context, e *Env) error {
	var errs []error
	for query, want := range map[string]int{
		"?watch=1&resourceVersion=abc":        500,
		"?watch=1&resourceVersionMatch=Exact": 422,
		"?watch=1&labelSelector=a%20b":        400,
	} {
		_, _, err := e.socket(ctx, configMaps+query, code(want))
		errs = append(errs, err)
	}
	_, _, err := e.socket(ctx, configMaps+socketWatch, accept(compare.YAML), code(406))
	return errors.Join(append(errs, err)...)
}
