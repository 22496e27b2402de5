// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"runtime"
)

// provenance writes the predicate of SLSA's provenance (https://slsa.dev/spec/v1.0/provenance):
// from which commit, by which script and with which version of Go. The argument is the commit.
// WATCHKEEPER_BUILDER names the builder by a URI, and WATCHKEEPER_INVOCATION its run; what is
// signed is as trustworthy as the identity that signs it.
func provenance(o options) error {
	const repository = "https://github.com/watchkeeper/watchkeeper"
	var commit string
	if len(o.args) == 1 {
		commit = o.args[0]
	}
	type object = map[string]any
	predicate := object{
		"buildDefinition": object{
			"buildType":          repository + "/blob/main/docs/releasing.md",
			"externalParameters": object{"repository": repository, "ref": "refs/tags/v" + o.version, "script": ".ci/release"},
			"internalParameters": object{"go": runtime.Version()},
			"resolvedDependencies": []object{{
				"uri":    "git+" + repository + "@refs/tags/v" + o.version,
				"digest": object{"gitCommit": commit},
			}},
		},
		"runDetails": object{
			"builder":  object{"id": os.Getenv("WATCHKEEPER_BUILDER")},
			"metadata": object{"invocationId": os.Getenv("WATCHKEEPER_INVOCATION")},
		},
	}
	text, err := json.MarshalIndent(predicate, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.out, append(text, '\n'), 0o644)
}
