// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package thirdparty

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Package is an npm package whose code is in the page, and so in the program.
type Package struct{ Name, Version, License string }

// String returns how the package is named in licences.
func (p Package) String() string { return "npm:" + p.Name + " " + p.Version }

// PagePackages returns the packages in the page whose sources are in a folder: those that
// its package-lock.json has for other purposes than development. The page's build fails if it
// has the code of others (ui/vite.config.ts).
func PagePackages(ui string) ([]Package, error) {
	file := filepath.Join(ui, "package-lock.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version, License string
			Dev, Link        bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var packages []Package
	for path, p := range lock.Packages {
		if name, ok := strings.CutPrefix(path, nodeModules); ok && !p.Dev && !p.Link {
			packages = append(packages, Package{name, p.Version, p.License})
		}
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("%s: no package is part of the page", file)
	}
	slices.SortFunc(packages, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return packages, nil
}

const nodeModules = "node_modules/"

// PageLicenses returns the licences of the packages in the page, which npm has installed. Of
// a package without a text of its licence that may be used under the Apache License 2.0, it is
// that one, which is ours, too.
func PageLicenses(ui string) ([]License, error) {
	packages, err := PagePackages(ui)
	if err != nil {
		return nil, err
	}
	var licenses []License
	for _, p := range packages {
		found, err := licensesIn(p.String(), filepath.Join(ui, nodeModules, p.Name), "")
		if err != nil {
			return nil, err
		}
		if len(found) == 0 && strings.Contains(p.License, "Apache-2.0") {
			if found, err = licensesIn(p.String(), filepath.Dir(filepath.Clean(ui)), ""); err != nil {
				return nil, err
			}
		}
		licenses = append(licenses, found...)
	}
	return licenses, nil
}
