// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// contactEvery is how often it is looked whether the upstream is there.
const contactEvery = time.Second

// A contact is how things stand between the gateway and the upstream of a
// resource.
type contact struct {
	// Since is when the upstream was last heard of.
	Since time.Time `json:"since"`
	// Message is why it is out of reach; "" while it is not.
	Message string `json:"message"`
}

// contact tells how the upstream of a watch that is served from here is. Of
// others there is nothing to tell: they end with the upstream's own.
func (c *cache) contact(r *http.Request) contact {
	target, ok := parsePath(r.URL.Path)
	if !ok {
		return contact{}
	}
	c.mu.Lock()
	res := c.watched[target.resource]
	c.mu.Unlock()
	if res == nil {
		return contact{}
	}
	status := res.reflector.Status()
	if status.LastError == nil {
		return contact{}
	}
	return contact{Since: status.LastContact.UTC(), Message: "nothing comes from the API server: " + cause(status.LastError)}
}

// contacts tell the watches of a multiwatch when the upstream is out of reach,
// once more when that has another reason, and when it is back:
//
//	{"watch":1,"type":"STALE","object":{"since":"…","message":"…"}}
//	{"watch":1,"type":"CURRENT"}
type contacts struct {
	of      func(*http.Request) contact
	watches []toldWatch
}

// A toldWatch is a watch, and why it was last told that it is stale; "" if it is
// not.
type toldWatch struct {
	writer  *watchWriter
	request *http.Request
	stale   string
}

// run looks and tells until ctx ends or the client is gone.
func (c *contacts) run(ctx context.Context) {
	tick := time.NewTicker(contactEvery)
	defer tick.Stop()
	for c.tell() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *contacts) tell() error {
	for i := range c.watches {
		w := &c.watches[i]
		now := c.of(w.request)
		line := `"type":"CURRENT"}`
		switch now.Message {
		case w.stale:
			continue
		case "":
		default:
			object, err := json.Marshal(now)
			if err != nil {
				return err // it is a time and a text
			}
			line = `"type":"STALE","object":` + string(object) + "}"
		}
		if err := w.writer.tell(line); err != nil {
			return err
		}
		w.stale = now.Message
	}
	return nil
}
