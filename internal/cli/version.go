// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// versionInfo describes the build of a binary.
type versionInfo struct {
	Version    string `json:"version"`
	Revision   string `json:"revision,omitempty"`
	Modified   bool   `json:"modified,omitempty"`
	GoVersion  string `json:"goVersion"`
	Platform   string `json:"platform"`
	Kubernetes string `json:"kubernetes"`
}

func newVersion(s streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			switch output {
			case "":
				fmt.Fprintf(s.out, "watchkeeper %s\n%s %s\nk8s.io/client-go %s\n", v.Version, v.GoVersion, v.Platform, v.Kubernetes)
				return nil
			case "json":
				enc := json.NewEncoder(s.out)
				enc.SetIndent("", "  ")
				return enc.Encode(v)
			}
			return fmt.Errorf("--output %q is unknown: use json or leave it out", output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return cmd
}

func readVersion() versionInfo {
	v := versionInfo{
		Version:    "(devel)",
		GoVersion:  runtime.Version(),
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
		Kubernetes: "unknown",
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			v.Revision = setting.Value
		case "vcs.modified":
			v.Modified = setting.Value == "true"
		}
	}
	for _, dep := range info.Deps {
		if dep.Path == "k8s.io/client-go" {
			v.Kubernetes = dep.Version
		}
	}
	return v
}

// userAgent is the User-Agent of the gateway's own requests.
func userAgent() string {
	v := readVersion()
	return fmt.Sprintf("watchkeeper/%s (%s)", strings.Trim(v.Version, "()"), v.Platform)
}
