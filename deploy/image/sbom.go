// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const unknown = "NOASSERTION"

// writeSBOM writes an SPDX document of a binary: itself, Go's standard library, and the
// modules in it, by what the compiler has put into it.
func writeSBOM(file string, b binary, info *buildinfo.BuildInfo, about description) error {
	content, err := os.ReadFile(b.path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	root := newPackage("Package-program", info.Main.Path, about.version)
	root.PrimaryPackagePurpose = "APPLICATION"
	root.PackageLicenseDeclared = "Apache-2.0"
	root.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: hex.EncodeToString(sum[:])}}
	document := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      fmt.Sprintf("%s %s for %s", program, about.version, b.platform),
		DocumentNamespace: "urn:sha256:" + hex.EncodeToString(sum[:]),
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "watchkeeper-deploy-image"}},
			Created:  about.created.UTC().Format(time.RFC3339),
		},
		Packages:      []*v2_3.Package{root},
		Relationships: []*v2_3.Relationship{relation("DOCUMENT", "DESCRIBES", root.PackageSPDXIdentifier)},
	}
	modules := append([]*debug.Module{{Path: "std", Version: info.GoVersion}}, info.Deps...)
	for i, m := range modules {
		if m.Replace != nil {
			m = m.Replace
		}
		p := newPackage(fmt.Sprintf("Package-%d", i), m.Path, m.Version)
		p.PrimaryPackagePurpose = "LIBRARY"
		document.Packages = append(document.Packages, p)
		document.Relationships = append(document.Relationships, relation(root.PackageSPDXIdentifier, "CONTAINS", p.PackageSPDXIdentifier))
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

func newPackage(id, module, version string) *v2_3.Package {
	purl := fmt.Sprintf("pkg:golang/%s@%s", module, version)
	return &v2_3.Package{
		PackageSPDXIdentifier: common.ElementID(id), PackageName: module, PackageVersion: version,
		PackageDownloadLocation: unknown, PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown,
		PackageExternalReferences: []*v2_3.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: purl}},
	}
}

func relation(from common.ElementID, kind string, to common.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{RefA: common.MakeDocElementID("", string(from)), Relationship: kind, RefB: common.MakeDocElementID("", string(to))}
}
