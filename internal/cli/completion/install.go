// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package completion

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// program is the name that is completed.
const program = "watchkeeper"

// installed are the shells for which there is a file to write, each with its path.
var installed = []struct {
	shell string
	path  func(home string) string
}{
	{"bash", func(home string) string {
		// bash-completion loads the file named like a command when that is completed first. Since
		// version 2.12 the variable may list several directories.
		dir, _, _ := strings.Cut(os.Getenv("BASH_COMPLETION_USER_DIR"), ":")
		if dir == "" {
			dir = filepath.Join(baseDir("XDG_DATA_HOME", home, ".local/share"), "bash-completion")
		}
		return filepath.Join(dir, "completions", program)
	}},
	{"zsh", func(home string) string {
		// zsh has no directory of the user's own. This one has the name of the one for all users.
		return filepath.Join(baseDir("XDG_DATA_HOME", home, ".local/share"), "zsh", "site-functions", "_"+program)
	}},
	{"fish", func(home string) string {
		return filepath.Join(baseDir("XDG_CONFIG_HOME", home, ".config"), "fish", "completions", program+".fish")
	}},
}

// baseDir returns a directory of the XDG base directory specification, which says that
// relative paths are ignored.
func baseDir(variable, home, standard string) string {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(home, standard)
}

// An installation writes the files of one run of the command.
type installation struct {
	root *cobra.Command
	home string
	out  io.Writer // has the files
	err  io.Writer // has what is left to do
}

func newInstallation(cmd *cobra.Command) *installation {
	return &installation{root: cmd.Root(), out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
}

// run installs the scripts of the named shells, or of those that this machine has.
func (in *installation) run(names []string) (err error) {
	if in.home, err = os.UserHomeDir(); err != nil {
		return errors.New("the files belong into the home directory, which is not known: set HOME")
	}
	if len(names) == 0 {
		if names, err = in.present(); err != nil {
			return err
		}
	}
	for _, file := range installed {
		if !slices.Contains(names, file.shell) {
			continue
		}
		script, err := in.script(file.shell)
		if err != nil {
			return err
		}
		path := file.path(in.home)
		if err := write(path, script, 0o644); err != nil {
			return fmt.Errorf("install the completion for %s: %w; use '%s completion %s' to print it", file.shell, err, in.root.DisplayName(), file.shell)
		}
		in.wrote(file.shell, path)
		in.advise(file.shell, path)
	}
	return in.installPlugin()
}

// present returns the shells with files that this machine has, and the user's own one.
func (in *installation) present() (names []string, err error) {
	own := filepath.Base(os.Getenv("SHELL"))
	for _, file := range installed {
		if _, err := exec.LookPath(file.shell); err == nil || own == file.shell {
			names = append(names, file.shell)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("neither bash nor zsh nor fish is in PATH: name one of them, as in '%s completion --install bash'", in.root.DisplayName())
	}
	if own != "." && own != "sh" && !slices.Contains(names, own) {
		in.note("There is nothing to install for %s, your shell: see '%s completion --help'.", own, in.root.DisplayName())
	}
	return names, nil
}

// script returns the script of a shell.
func (in *installation) script(shell string) ([]byte, error) {
	var script bytes.Buffer
	err := generators[shell](in.root, &script, true)
	return script.Bytes(), err
}

func (in *installation) wrote(what, path string) { fmt.Fprintf(in.out, "%-8s %s\n", what, path) }

func (in *installation) note(format string, args ...any) { fmt.Fprintf(in.err, format+"\n", args...) }

// bashCompletions are where packages of bash-completion have their main file.
var bashCompletions = []string{
	"/usr/share/bash-completion/bash_completion",
	"/usr/local/share/bash-completion/bash_completion",
	"/opt/homebrew/share/bash-completion/bash_completion",
	"/home/linuxbrew/.linuxbrew/share/bash-completion/bash_completion",
	"/opt/local/share/bash-completion/bash_completion",
	"/run/current-system/sw/share/bash-completion/bash_completion",
}

// advise says what a shell needs to load a file.
func (in *installation) advise(shell, path string) {
	switch shell {
	case "bash":
		if !slices.ContainsFunc(bashCompletions, exists) {
			in.note("bash loads the file if the package bash-completion is installed.")
		}
	case "zsh":
		config := cmp.Or(os.Getenv("ZDOTDIR"), in.home)
		if dir := filepath.Dir(path); !in.zshFinds(config, dir) {
			in.note("zsh loads the file with these lines in %s; the first one belongs before compinit:\n  fpath=(%s $fpath)\n  autoload -Uz compinit && compinit", in.word(filepath.Join(config, ".zshrc")), in.word(dir))
		}
	}
}

// zshFinds reports whether zsh looks for functions in a directory. It reads the files in the
// directory config: an interactive zsh, which knows, might do anything, such as starting tmux.
func (in *installation) zshFinds(config, dir string) bool {
	if slices.Contains(filepath.SplitList(os.Getenv("FPATH")), dir) {
		return true
	}
	// The directory may be spelled with ~, $HOME or a variable.
	tail, ok := strings.CutPrefix(dir, in.home+string(filepath.Separator))
	if !ok {
		tail = dir
	}
	for _, name := range []string{".zshrc", ".zshenv", ".zprofile"} {
		text, err := os.ReadFile(filepath.Join(config, name))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, tail) && !strings.HasPrefix(strings.TrimSpace(line), "#") {
				return true
			}
		}
	}
	return false
}

var plain = regexp.MustCompile(`^[\w./@%+-]*$`)

// word returns a path as a word for a shell, with ~ if it is below the home directory.
func (in *installation) word(path string) string {
	if tail, ok := strings.CutPrefix(path, in.home+string(filepath.Separator)); ok && plain.MatchString(tail) {
		return "~/" + tail
	}
	if plain.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// write replaces a file at once, so that a shell never reads a part of it. It leaves a file
// that has the content already.
func write(path string, content []byte, mode os.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm() == mode {
			return nil
		}
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+program+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
