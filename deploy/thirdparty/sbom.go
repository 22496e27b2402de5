// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package thirdparty

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const unknown = "NOASSERTION"

// A Program is what an SPDX document is about.
type Program struct {
	Name, Version string
	Platform      string
	Path          string    // of the binary
	Created       time.Time // such as the time of the commit
	Packages      []Package // in the page
}

// WriteSBOM writes an SPDX document of a binary: itself, Go's standard library, the modules
// in it, by what the compiler has put into it, and the packages in the page.
func WriteSBOM(file string, about Program) error {
	info, err := buildinfo.ReadFile(about.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", about.Path, err)
	}
	content, err := os.ReadFile(about.Path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	root := newPackage("Package-program", "golang", info.Main.Path, about.Version)
	root.PrimaryPackagePurpose = "APPLICATION"
	root.PackageLicenseDeclared = "Apache-2.0"
	root.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: hex.EncodeToString(sum[:])}}
	document := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      fmt.Sprintf("%s %s for %s", about.Name, about.Version, about.Platform),
		DocumentNamespace: "urn:sha256:" + hex.EncodeToString(sum[:]),
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "watchkeeper-deploy"}},
			Created:  about.Created.UTC().Format(time.RFC3339),
		},
		Packages:      []*v2_3.Package{root},
		Relationships: []*v2_3.Relationship{relation("DOCUMENT", "DESCRIBES", root.PackageSPDXIdentifier)},
	}
	add := func(p *v2_3.Package) {
		p.PrimaryPackagePurpose = "LIBRARY"
		document.Packages = append(document.Packages, p)
		document.Relationships = append(document.Relationships, relation(root.PackageSPDXIdentifier, "CONTAINS", p.PackageSPDXIdentifier))
	}
	modules := append([]*debug.Module{{Path: "std", Version: info.GoVersion}}, info.Deps...)
	for i, m := range modules {
		if m.Replace != nil {
			m = m.Replace
		}
		add(newPackage(fmt.Sprintf("Package-%d", i), "golang", m.Path, m.Version))
	}
	for i, p := range about.Packages {
		added := newPackage(fmt.Sprintf("Package-npm-%d", i), "npm", p.Name, p.Version)
		if p.License != "" {
			added.PackageLicenseDeclared = p.License
		}
		add(added)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := spdxjson.Write(document, f, spdxjson.Indent("  ")); err != nil {
		return err
	}
	return f.Close()
}

func newPackage(id, registry, name, version string) *v2_3.Package {
	purl := fmt.Sprintf("pkg:%s/%s@%s", registry, strings.ReplaceAll(name, "@", "%40"), version)
	return &v2_3.Package{
		PackageSPDXIdentifier: common.ElementID(id), PackageName: name, PackageVersion: version,
		PackageDownloadLocation: unknown, PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown,
		PackageExternalReferences: []*v2_3.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: purl}},
	}
}

func relation(from common.ElementID, kind string, to common.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{RefA: common.MakeDocElementID("", string(from)), Relationship: kind, RefB: common.MakeDocElementID("", string(to))}
}
