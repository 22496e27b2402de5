// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// An etcd is a client of the control plane's etcd, through its JSON gateway.
type etcd struct {
	url    string
	client *http.Client
}

func newEtcd(c *clustertest.Cluster) (*etcd, error) {
	ports, err := c.Ports()
	if err != nil {
		return nil, err
	}
	pki := func(name string) string { return filepath.Join(c.Dir, "pki", name) }
	cert, err := tls.LoadX509KeyPair(pki("apiserver-etcd.crt"), pki("apiserver-etcd.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(pki("etcd-ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &etcd{
		url: fmt.Sprintf("https://127.0.0.1:%d", ports["etcd"]),
		client: &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13},
		}},
	}, nil
}

func (e *etcd) post(ctx context.Context, path string, in any) (*http.Response, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := e.client.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		err = fmt.Errorf("etcd %s: %s", path, resp.Status)
	}
	return resp, err
}

// revision returns the RV of the last write to etcd.
func (e *etcd) revision(ctx context.Context) (uint64, error) {
	header, _, err := e.list(ctx, span("/none"))
	return header, err
}

// list returns the RV of the last write to etcd, and the keys of a range.
func (e *etcd) list(ctx context.Context, keys map[string]any) (uint64, []etcdKV, error) {
	resp, err := e.post(ctx, "/v3/kv/range", keys)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	var list struct {
		Header struct{ Revision string }
		KVs    []etcdKV
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return 0, nil, err
	}
	rv, err := strconv.ParseUint(list.Header.Revision, 10, 64)
	return rv, list.KVs, err
}

// span selects the keys below a prefix.
func span(prefix string) map[string]any {
	return map[string]any{
		"key":       base64.StdEncoding.EncodeToString([]byte(prefix)),
		"range_end": base64.StdEncoding.EncodeToString([]byte(strings.TrimSuffix(prefix, "/") + "0")),
	}
}

// allKeys selects all keys.
func allKeys() map[string]any {
	return map[string]any{"key": "AA==", "range_end": "AA=="} // from the byte 0 on
}

// compact compacts etcd at an RV.
func (e *etcd) compact(ctx context.Context, rv uint64) error {
	resp, err := e.post(ctx, "/v3/kv/compaction", map[string]any{"revision": strconv.FormatUint(rv, 10), "physical": true})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// advance writes a key of no resource until etcd has reached an RV.
func (e *etcd) advance(ctx context.Context, rv uint64) error {
	for {
		now, err := e.revision(ctx)
		if err != nil || now >= rv {
			return err
		}
		if err := e.write(ctx, min(rv-now, 500)); err != nil {
			return err
		}
	}
}

// write writes a key of no resource n times, eight at a time: thousands of writes one
// after the other take minutes on a busy machine.
func (e *etcd) write(ctx context.Context, n uint64) error {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	var writes errgroup.Group
	writes.SetLimit(8)
	for range n {
		writes.Go(func() error {
			resp, err := e.post(ctx, "/v3/kv/put", map[string]any{"key": base64.StdEncoding.EncodeToString([]byte("robustness"))})
			if err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is used again
			return resp.Body.Close()
		})
	}
	return writes.Wait()
}

// A recorder follows one prefix of etcd and keeps the truth.
type recorder struct {
	etcd   *etcd
	prefix string
	pause  func() // stops following

	mu       sync.Mutex // guards what follows
	truth    truth
	now      state
	last     uint64 // RV of the last event
	restores int    // that began another truth
	err      error
}

// record returns a recorder that has the current state, and follows changes until
// ctx ends.
func (e *etcd) record(ctx context.Context, wg *sync.WaitGroup, prefix string) (*recorder, error) {
	r := &recorder{etcd: e, prefix: prefix, now: state{}}
	r.truth.start = map[string]*version{}
	base, kvs, err := e.list(ctx, span(prefix))
	if err != nil {
		return nil, err
	}
	for _, kv := range kvs {
		v, err := decode(kv)
		if err != nil {
			return nil, err
		}
		r.truth.start[v.Key], r.now[v.Key] = v, v
	}
	r.truth.base, r.last = base, base
	r.run(ctx, wg)
	return r, nil
}

// run follows changes until ctx ends, or pause is called.
func (r *recorder) run(ctx context.Context, wg *sync.WaitGroup) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	r.pause = func() {
		cancel()
		<-ended
	}
	wg.Go(func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := r.follow(ctx, span(r.prefix), math.MaxUint64); err != nil && ctx.Err() == nil {
				r.mu.Lock()
				r.err = err
				r.mu.Unlock()
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// complete adds what it has not received up to an RV, which is that of the last write. It is
// called after pause. A watch of all keys has an event at each RV, and so shows that
// nothing is missing.
func (r *recorder) complete(ctx context.Context, rv uint64) error {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	for r.place() < rv {
		if ctx.Err() != nil {
			return fmt.Errorf("the truth of %s stays at %d, want %d: %w", r.prefix, r.place(), rv, ctx.Err())
		}
		if err := r.follow(ctx, allKeys(), rv); err != nil {
			return err
		}
	}
	return nil
}

// restored begins another truth: etcd has the state of a backup, and continues above an RV.
// The truth of before ended at a time, when etcd's RV was head. The caller then calls run.
func (r *recorder) restored(b backupFile, rv uint64, at time.Time, head uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.truth
	old.ended, old.head = at, head
	of := &old
	for range r.restores - b.restores {
		of = of.earlier
	}
	r.truth = truth{
		base: old.base, start: old.start, versions: of.own(old.base, b.rv),
		earlier: &old, backup: b.rv, bumped: rv > b.rv, began: at,
	}
	r.now, r.last = r.truth.at(rv), rv
	r.restores++
}

// follow watches keys from the last event on until the stream ends, for example because
// etcd is killed, or has reached an RV.
func (r *recorder) follow(ctx context.Context, keys map[string]any, upTo uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keys["start_revision"] = r.place() + 1
	resp, err := r.etcd.post(ctx, "/v3/watch", map[string]any{"create_request": keys})
	if err != nil {
		return nil // etcd is down
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		var answer struct {
			Error  json.RawMessage
			Result struct {
				Canceled bool
				Events   []struct {
					Type string // PUT is left out
					KV   etcdKV
				}
			}
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			return err
		}
		if answer.Result.Canceled {
			return fmt.Errorf("etcd ended the watch: %s", line)
		}
		if answer.Error != nil {
			return nil // etcd is about to end the stream
		}
		for _, e := range answer.Result.Events {
			if err := r.add(e.Type == "DELETE", e.KV); err != nil {
				return err
			}
		}
		if r.place() >= upTo {
			return nil
		}
	}
}

func (r *recorder) add(deleted bool, kv etcdKV) error {
	text, err := base64.StdEncoding.DecodeString(kv.Key)
	if err != nil {
		return err
	}
	rv, err := strconv.ParseUint(kv.ModRevision, 10, 64)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if rv < r.last {
		return fmt.Errorf("etcd is at %d, after %d", rv, r.last)
	}
	r.last = rv
	key, ok := strings.CutPrefix(string(text), r.prefix)
	if !ok {
		return nil
	}
	var v *version
	if deleted {
		v = &version{RV: rv, Key: key, Deleted: true, prev: r.now[key]}
		if v.prev == nil {
			return fmt.Errorf("etcd deletes %s at %d, which did not exist", key, rv)
		}
		v.UID, v.JSON = v.prev.UID, v.prev.at(rv)
		delete(r.now, key)
	} else {
		if v, err = decode(kv); err != nil {
			return err
		}
		v.prev = r.now[v.Key]
		r.now[v.Key] = v
	}
	v.seen = time.Now()
	r.truth.versions = append(r.truth.versions, v)
	return nil
}

func (r *recorder) place() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// result waits until the truth has reached the RV, and returns it.
func (r *recorder) result(rv uint64) (*truth, error) {
	for deadline := time.Now().Add(clusterTimeout); ; time.Sleep(50 * time.Millisecond) {
		r.mu.Lock()
		last, err := r.last, r.err
		t := r.truth
		r.mu.Unlock()
		if err != nil || last >= rv {
			return &t, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("the truth of %s stays at %d, want %d: %w", r.prefix, last, rv, io.ErrNoProgress)
		}
	}
}
