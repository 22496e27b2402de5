// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serverVariable names the gateway where --server does not.
const serverVariable = "WATCHKEEPER_SERVER"

// A client talks to a running gateway.
type client struct{ server string }

func (c *client) addFlags(f *pflag.FlagSet) {
	f.StringVar(&c.server, "server", cmp.Or(os.Getenv(serverVariable), fmt.Sprintf("http://127.0.0.1:%d", defaultPort)),
		"URL of the running gateway; also $"+serverVariable)
}

// get returns the body of a successful answer, which the caller closes. Other
// answers are errors in their own words.
func (c *client) get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	base, err := url.Parse(c.server)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("--server %q is no URL of a gateway: use one such as http://127.0.0.1:%d", c.server, defaultPort)
	}
	base.Path, base.RawQuery = strings.TrimSuffix(base.Path, "/")+path, query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", userAgent())
	resp, err := http.DefaultClient.Do(r)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("no gateway at %s: start one with 'watchkeeper serve', or name it with --server", c.server)
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	var status metav1.Status
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		return nil, errors.New(status.Message)
	}
	return nil, fmt.Errorf("%s answers with %s: is it a gateway of this version?", c.server, resp.Status)
}
