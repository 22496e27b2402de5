// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/sassoftware/go-rpmutils"
)

// A file is what an archive or a package has at a path.
type file struct {
	mode    fs.FileMode // with fs.ModeSymlink
	link    string
	content []byte
	time    time.Time
	owner   string
}

// A tree is the content of an archive or a package by path, without folders.
type tree map[string]file

// add refuses names that are there already, or that lead elsewhere.
func (t tree) add(name string, f file) error {
	name = strings.TrimPrefix(path.Clean(name), "/")
	if _, ok := t[name]; ok || name == "." || strings.HasPrefix(name, "../") {
		return fmt.Errorf("the name %q is bad, or there twice", name)
	}
	t[name] = f
	return nil
}

func readTar(r io.Reader) (tree, error) {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	t := tree{}
	for archive := tar.NewReader(unzipped); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		f := file{mode: h.FileInfo().Mode(), link: h.Linkname, time: h.ModTime, owner: h.Uname}
		if f.content, err = io.ReadAll(archive); err != nil {
			return nil, err
		}
		if err := t.add(h.Name, f); err != nil {
			return nil, err
		}
	}
}

func readZip(name string) (tree, error) {
	r, err := zip.OpenReader(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	t := tree{}
	for _, entry := range r.File {
		if entry.FileInfo().IsDir() {
			continue
		}
		in, err := entry.Open()
		if err != nil {
			return nil, err
		}
		f := file{mode: entry.Mode(), time: entry.Modified}
		f.content, err = io.ReadAll(in)
		if err = errors.Join(err, in.Close()); err != nil {
			return nil, err
		}
		if err := t.add(entry.Name, f); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// readArchive returns the content of an archive of a release.
func readArchive(name string) (tree, error) {
	if strings.HasSuffix(name, ".zip") {
		return readZip(name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readTar(f)
}

// readDeb returns the content of a Debian package, and its control file. The format is that of
// deb(5): an ar archive with three members.
func readDeb(name string) (t tree, control string, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, "", err
	}
	members, err := readAr(text)
	if err != nil {
		return nil, "", err
	}
	if string(members["debian-binary"]) != "2.0\n" {
		return nil, "", fmt.Errorf("debian-binary is %q", members["debian-binary"])
	}
	about, err := readTar(bytes.NewReader(members["control.tar.gz"]))
	if err != nil {
		return nil, "", fmt.Errorf("control: %w", err)
	}
	if t, err = readTar(bytes.NewReader(members["data.tar.gz"])); err != nil {
		return nil, "", fmt.Errorf("data: %w", err)
	}
	return t, string(about["control"].content), nil
}

// readAr returns the members of an ar archive.
func readAr(text []byte) (map[string][]byte, error) {
	const magic, head = "!<arch>\n", 60
	text, ok := bytes.CutPrefix(text, []byte(magic))
	if !ok {
		return nil, errors.New("this is no ar archive")
	}
	members := map[string][]byte{}
	for len(text) > 0 {
		if len(text) < head || string(text[58:60]) != "`\n" {
			return nil, errors.New("the head of a member is cut")
		}
		name := strings.TrimRight(string(text[:16]), " /")
		size, err := strconv.Atoi(strings.TrimSpace(string(text[48:58])))
		if err != nil || size < 0 || size > len(text)-head {
			return nil, fmt.Errorf("%s: the size is bad", name)
		}
		members[name] = text[head : head+size]
		text = text[min(head+size+size%2, len(text)):]
	}
	return members, nil
}

// readRPM returns the content of an RPM package, after a check of its digests, and its
// version.
func readRPM(name string) (t tree, about *rpmutils.NEVRA, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if _, _, err := rpmutils.Verify(f, nil); err != nil {
		return nil, nil, fmt.Errorf("digests: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, nil, err
	}
	rpm, err := rpmutils.ReadRpm(f)
	if err != nil {
		return nil, nil, err
	}
	if about, err = rpm.Header.GetNEVRA(); err != nil {
		return nil, nil, err
	}
	payload, err := rpm.PayloadReaderExtended()
	if err != nil {
		return nil, nil, err
	}
	t = tree{}
	for {
		info, err := payload.Next()
		if errors.Is(err, io.EOF) {
			return t, about, nil
		}
		if err != nil {
			return nil, nil, err
		}
		f := file{mode: fs.FileMode(info.Mode() & 0o777), link: info.Linkname(), time: time.Unix(int64(info.Mtime()), 0), owner: info.UserName()}
		switch info.Mode() & 0o170000 {
		case 0o040000:
			continue
		case 0o120000:
			f.mode |= fs.ModeSymlink
		}
		if f.link == "" {
			if f.content, err = io.ReadAll(payload); err != nil {
				return nil, nil, err
			}
		}
		if err := t.add(info.Name(), f); err != nil {
			return nil, nil, err
		}
	}
}
