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
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/clustertest"
)

// An etcd is a client of the control plane's etcd, through its JSON gateway.
type etcd struct {
	url    string
	client *http.Client
}

func newEtcd(c *clustertest.Cluster) (*etcd, error) {
	var s struct{ Ports map[string]int }
	text, err := os.ReadFile(filepath.Join(c.Dir, "state.json"))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
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
		url: fmt.Sprintf("https://127.0.0.1:%d", s.Ports["etcd"]),
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

// span selects the keys below a prefix.
func span(prefix string) map[string]any {
	return map[string]any{
		"key":       base64.StdEncoding.EncodeToString([]byte(prefix)),
		"range_end": base64.StdEncoding.EncodeToString([]byte(strings.TrimSuffix(prefix, "/") + "0")),
	}
}

// compact compacts etcd at an RV.
func (e *etcd) compact(ctx context.Context, rv uint64) error {
	resp, err := e.post(ctx, "/v3/kv/compaction", map[string]any{"revision": strconv.FormatUint(rv, 10), "physical": true})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// A recorder follows one prefix of etcd and keeps the truth.
type recorder struct {
	etcd   *etcd
	prefix string

	mu    sync.Mutex // guards what follows
	truth truth
	now   state
	last  uint64 // RV of the last event
	err   error
}

// record returns a recorder that has the current state, and follows changes until
// ctx ends.
func (e *etcd) record(ctx context.Context, wg *sync.WaitGroup, prefix string) (*recorder, error) {
	resp, err := e.post(ctx, "/v3/kv/range", span(prefix))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var list struct {
		Header struct{ Revision string }
		KVs    []etcdKV
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return nil, err
	}
	r := &recorder{etcd: e, prefix: prefix, now: state{}}
	r.truth.start = map[string]*version{}
	if r.truth.base, err = strconv.ParseUint(list.Header.Revision, 10, 64); err != nil {
		return nil, err
	}
	for _, kv := range list.KVs {
		v, err := decode(kv)
		if err != nil {
			return nil, err
		}
		r.truth.start[v.Key], r.now[v.Key] = v, v
	}
	r.last = r.truth.base
	wg.Go(func() {
		for ctx.Err() == nil {
			if err := r.follow(ctx); err != nil && ctx.Err() == nil {
				r.mu.Lock()
				r.err = err
				r.mu.Unlock()
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	return r, nil
}

// follow watches from the last event on until the stream ends, for example
// because etcd is killed.
func (r *recorder) follow(ctx context.Context) error {
	create := span(r.prefix)
	create["start_revision"] = r.place() + 1
	resp, err := r.etcd.post(ctx, "/v3/watch", map[string]any{"create_request": create})
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
	}
}

func (r *recorder) add(deleted bool, kv etcdKV) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var v *version
	if deleted {
		key, err := base64.StdEncoding.DecodeString(kv.Key)
		if err != nil {
			return err
		}
		v = &version{Key: strings.TrimPrefix(string(key), r.prefix), Deleted: true}
		if v.RV, err = strconv.ParseUint(kv.ModRevision, 10, 64); err != nil {
			return err
		}
		if v.prev = r.now[v.Key]; v.prev == nil {
			return fmt.Errorf("etcd deletes %s at %d, which did not exist", v.Key, v.RV)
		}
		v.UID, v.JSON = v.prev.UID, v.prev.at(v.RV)
		delete(r.now, v.Key)
	} else {
		var err error
		if v, err = decode(kv); err != nil {
			return err
		}
		v.prev = r.now[v.Key]
		r.now[v.Key] = v
	}
	if v.RV < r.last {
		return fmt.Errorf("etcd is at %d, after %d", v.RV, r.last)
	}
	r.last, v.seen = v.RV, time.Now()
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
