// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package completion

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	// plugin is the program that is "kubectl watchkeeper".
	plugin = "kubectl-" + program
	// completerProgram is what kubectl, since 1.26, runs to complete the arguments of the plugin.
	completerProgram = "kubectl_complete-" + program

	// completerScript finds the plugin in PATH, as kubectl has, so it remains valid when the plugin
	// is moved. A link to the program would not: a version manager's shims, and wrappers, are
	// programs that decide by the name of the link, or ignore it.
	completerScript = "#!/bin/sh\n# Completes \"kubectl watchkeeper\". Written by \"watchkeeper completion --install\".\nexec " + plugin + " __complete \"$@\"\n"
)

// installPlugin makes kubectl complete the arguments of the plugin: with a program next to the
// plugin or, if that directory cannot be written to, in ~/.local/bin.
func (in *installation) installPlugin() error {
	if !found("kubectl") && !found(plugin) {
		return nil
	}
	path, err := "", os.ErrNotExist
	for _, dir := range in.pluginDirs() {
		path = filepath.Join(dir, completerProgram)
		if err = write(path, []byte(completerScript), 0o755); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("install the completion for kubectl: %w; put an executable file %s into a directory of PATH, with the lines '#!/bin/sh' and 'exec %s __complete \"$@\"'", err, completerProgram, plugin)
	}
	in.wrote("kubectl", path)

	first, err := exec.LookPath(completerProgram)
	switch {
	case err != nil:
		in.note("kubectl does not find the file, as %s is not in PATH: add it.", in.word(filepath.Dir(path)))
	case !same(first, path):
		in.note("kubectl runs %s instead, which is first in PATH: remove it.", in.word(first))
	}
	if !found(plugin) {
		in.note("There is no %s in PATH, which is 'kubectl watchkeeper': make it with\n  ln -s %s %s", plugin, in.word(executable()), in.word(filepath.Join(filepath.Dir(path), plugin)))
	}
	return nil
}

// pluginDirs returns the directories for the file, the best one first.
func (in *installation) pluginDirs() (dirs []string) {
	for _, name := range []string{completerProgram, plugin, program} {
		if path, err := exec.LookPath(name); err == nil {
			dirs = append(dirs, filepath.Dir(path))
			break
		}
	}
	return append(dirs, filepath.Join(in.home, ".local", "bin"))
}

// executable returns the path of this program, as the user knows it.
func executable() string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	path, err := os.Executable()
	if err != nil {
		return program
	}
	return path
}

func found(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

func same(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
