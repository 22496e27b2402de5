// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/watchkeeper/watchkeeper/deploy/thirdparty"
)

const (
	program = "watchkeeper"
	path    = "usr/local/bin/" + program
	// user is that of the chart's Pods.
	user = 65532
)

// A binary is the program for a platform.
type binary struct {
	platform v1.Platform
	path     string
}

// A description is what the labels of an image say.
type description struct {
	version, revision string
	created           time.Time
	packages          []thirdparty.Package // in the page
}

// labels are the annotations of https://specs.opencontainers.org/image-spec/annotations/.
func (d description) labels() map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title":       "Watchkeeper",
		prefix + "description": "Serves the Kubernetes API to many clients from one watch per resource, and remembers it",
		prefix + "licenses":    "Apache-2.0",
		prefix + "version":     d.version,
		prefix + "revision":    d.revision,
		prefix + "created":     d.created.UTC().Format(time.RFC3339),
	}
}

// write makes the OCI layout, and an SPDX document per binary next to it, and returns the
// digest of the index.
func write(out string, binaries []binary, about description) (v1.Hash, error) {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return v1.Hash{}, err
	}
	var adds []mutate.IndexAddendum
	for _, b := range binaries {
		info, err := buildinfo.ReadFile(b.path)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("%s: %w", b.path, err)
		}
		if got := platformOf(info); got != b.platform.String() {
			return v1.Hash{}, fmt.Errorf("%s is for %s, not for %s", b.path, got, b.platform)
		}
		image, err := newImage(b, about)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("%s: %w", b.path, err)
		}
		adds = append(adds, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &b.platform}})
		sbom := fmt.Sprintf("%s-%s.spdx.json", strings.TrimSuffix(out, "/"), strings.ReplaceAll(b.platform.String(), "/", "-"))
		about := thirdparty.Program{Name: program, Version: about.version, Platform: b.platform.String(), Path: b.path, Created: about.created, Packages: about.packages}
		if err := thirdparty.WriteSBOM(sbom, about); err != nil {
			return v1.Hash{}, err
		}
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), adds...)
	index = mutate.Annotations(index, about.labels()).(v1.ImageIndex)
	if err := replaceLayout(out, index); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// platformOf returns the platform that a binary is for.
func platformOf(info *buildinfo.BuildInfo) string {
	var system, architecture string
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS":
			system = s.Value
		case "GOARCH":
			architecture = s.Value
		}
	}
	return system + "/" + architecture
}

// newImage returns an image with nothing but the binary.
func newImage(b binary, about description) (v1.Image, error) {
	content, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	files, err := archive(content, about.created)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: about.created}, CreatedBy: "deploy/image"}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = b.platform.OS, b.platform.Architecture, b.platform.Variant
	config.Created = v1.Time{Time: about.created}
	config.Config = v1.Config{
		Entrypoint:   []string{"/" + path},
		User:         fmt.Sprintf("%d:%d", user, user),
		WorkingDir:   "/",
		Env:          []string{"PATH=/" + filepath.ToSlash(filepath.Dir(path))},
		ExposedPorts: map[string]struct{}{"8001/tcp": {}, "8002/tcp": {}},
		Labels:       about.labels(),
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(image, about.labels()).(v1.Image), nil
}

// archive returns the files of the image as a tar archive.
func archive(content []byte, created time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	dir := ""
	for _, part := range strings.Split(filepath.ToSlash(filepath.Dir(path)), "/") {
		dir += part + "/"
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: created, Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o755, Size: int64(len(content)), ModTime: created, Format: tar.FormatPAX}); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

// replaceLayout writes the layout to a new folder, which then takes the place of out. It
// replaces nothing but another layout.
func replaceLayout(out string, index v1.ImageIndex) error {
	if _, err := os.Stat(out); err == nil {
		if _, err := os.Stat(filepath.Join(out, "oci-layout")); err != nil {
			return fmt.Errorf("-out %s exists, and is no OCI layout: use another folder", out)
		}
	}
	next, err := os.MkdirTemp(filepath.Dir(out), ".image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(next) // unless it was renamed
	if err := os.Chmod(next, 0o755); err != nil {
		return err
	}
	if _, err := layout.Write(next, index); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return os.Rename(next, out)
}
