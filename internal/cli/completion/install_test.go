// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package completion_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/watchkeeper/watchkeeper/internal/cli/completion"
)

// A user has a home directory, and a PATH with one directory of programs.
type user struct {
	t         *testing.T
	home, bin string
}

// newUser makes a user with some programs, and sets the environment.
func newUser(t *testing.T, programs ...string) *user {
	t.Helper()
	u := &user{t, t.TempDir(), t.TempDir()}
	for _, name := range []string{"XDG_DATA_HOME", "XDG_CONFIG_HOME", "BASH_COMPLETION_USER_DIR", "ZDOTDIR", "FPATH", "SHELL"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", u.home)
	t.Setenv("PATH", u.bin)
	for _, name := range programs {
		u.write(filepath.Join(u.bin, name), "#!/bin/sh\n", 0o755)
	}
	return u
}

func (u *user) write(path, text string, mode fs.FileMode) {
	u.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		u.t.Fatal(err)
	}
}

// run runs "watchkeeper completion".
func (u *user) run(args ...string) (stdout, stderr string, err error) {
	u.t.Helper()
	var out, errs bytes.Buffer
	root := &cobra.Command{Use: "watchkeeper", SilenceErrors: true, SilenceUsage: true}
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(append([]string{"completion"}, args...))
	root.AddCommand(completion.Command())
	err = root.ExecuteContext(u.t.Context())
	return out.String(), errs.String(), err
}

// install runs "watchkeeper completion --install", and returns what it says.
func (u *user) install(shells ...string) (stdout, stderr string) {
	u.t.Helper()
	stdout, stderr, err := u.run(append(shells, "--install")...)
	if err != nil {
		u.t.Fatal(err)
	}
	return stdout, stderr
}

// files returns the files in the home directory.
func (u *user) files() (names []string) {
	u.t.Helper()
	err := filepath.WalkDir(u.home, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, strings.TrimPrefix(path, u.home+"/"))
		}
		return err
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return names
}

func (u *user) expect(want ...string) {
	u.t.Helper()
	if got := u.files(); !slices.Equal(got, want) {
		u.t.Errorf("the files are %q, want %q", got, want)
	}
}

const (
	bashFile  = ".local/share/bash-completion/completions/watchkeeper"
	zshFile   = ".local/share/zsh/site-functions/_watchkeeper"
	fishFile  = ".config/fish/completions/watchkeeper.fish"
	ownPlugin = ".local/bin/kubectl_complete-watchkeeper"
)

// TestInstallShells: the files are those of the shells that are named, that the machine has, or
// that the user has; they are what is printed for the shell, and stay what they are.
func TestInstallShells(t *testing.T) {
	for _, test := range []struct {
		programs, args []string
		shell          string
		want           []string
	}{
		{[]string{"bash", "zsh", "fish"}, nil, "/bin/bash", []string{fishFile, bashFile, zshFile}},
		{[]string{"bash"}, nil, "/bin/zsh", []string{bashFile, zshFile}},
		{[]string{"bash"}, nil, "", []string{bashFile}},
		{nil, nil, "/usr/bin/fish", []string{fishFile}},
		{[]string{"bash", "zsh", "fish"}, []string{"zsh"}, "/bin/bash", []string{zshFile}},
		{nil, []string{"fish", "bash"}, "", []string{fishFile, bashFile}},
	} {
		t.Run(strings.Join(append(test.programs, test.args...), " ")+test.shell, func(t *testing.T) {
			u := newUser(t, test.programs...)
			t.Setenv("SHELL", test.shell)
			out, _ := u.install(test.args...)
			u.expect(test.want...)
			for _, file := range test.want {
				path := filepath.Join(u.home, file)
				if !strings.Contains(out, " "+path+"\n") {
					t.Errorf("%s is not named: %s", path, out)
				}
				shell := map[string]string{bashFile: "bash", zshFile: "zsh", fishFile: "fish"}[file]
				printed, _, err := u.run(shell)
				if text, readErr := os.ReadFile(path); err != nil || readErr != nil || string(text) != printed || printed == "" {
					t.Errorf("%s is not the script for %s: %v, %v", file, shell, err, readErr)
				}
				u.write(path, "old", 0o600)
			}
			again, _ := u.install(test.args...)
			u.expect(test.want...)
			if again != out {
				t.Errorf("again: %s, want %s", again, out)
			}
			for _, file := range test.want {
				if info, err := os.Stat(filepath.Join(u.home, file)); err != nil || info.Size() < 100 || info.Mode() != 0o644 {
					t.Errorf("%s was not replaced: %v, %v", file, info, err)
				}
			}
		})
	}
}

// TestInstallDirectories: the variables of the shells, and of the XDG base directory
// specification, say where the files are.
func TestInstallDirectories(t *testing.T) {
	u := newUser(t)
	t.Setenv("XDG_DATA_HOME", u.home+"/data")
	t.Setenv("XDG_CONFIG_HOME", "relative, and so ignored")
	u.install("bash", "zsh", "fish")
	u.expect(fishFile, "data/bash-completion/completions/watchkeeper", "data/zsh/site-functions/_watchkeeper")

	u = newUser(t)
	t.Setenv("BASH_COMPLETION_USER_DIR", u.home+"/mine:/nowhere")
	t.Setenv("XDG_CONFIG_HOME", u.home+"/config")
	u.install("bash", "fish")
	u.expect("config/fish/completions/watchkeeper.fish", "mine/completions/watchkeeper")
}

// TestInstallZsh: the lines for .zshrc are printed unless zsh finds the file.
func TestInstallZsh(t *testing.T) {
	const hint = "~/.zshrc; the first one belongs before compinit:\n  fpath=(~/.local/share/zsh/site-functions $fpath)\n  autoload -Uz compinit && compinit\n"
	u := newUser(t)
	if _, said := u.install("zsh"); !strings.HasSuffix(said, hint) {
		t.Errorf("said %q", said)
	}
	rc := filepath.Join(u.home, ".zshrc")
	for text, finds := range map[string]bool{
		"fpath=(~/.local/share/zsh/site-functions $fpath)":       true,
		"fpath+=(\"$HOME/.local/share/zsh/site-functions\")":     true,
		"fpath=(" + u.home + "/.local/share/zsh/site-functions)": true,
		"# fpath=(~/.local/share/zsh/site-functions $fpath)":     false,
		"fpath=(/usr/share/zsh/site-functions $fpath)":           false,
	} {
		u.write(rc, "autoload -Uz compinit\n"+text+"\ncompinit\n", 0o600)
		if _, said := u.install("zsh"); (said == "") != finds {
			t.Errorf("with %s, said %q", text, said)
		}
	}
	if text, err := os.ReadFile(rc); err != nil || !strings.HasPrefix(string(text), "autoload") {
		t.Errorf(".zshrc was changed: %v", err)
	}
	os.Remove(rc)
	t.Setenv("FPATH", "/usr/share/zsh:"+filepath.Dir(filepath.Join(u.home, zshFile)))
	if _, said := u.install("zsh"); said != "" {
		t.Errorf("with FPATH, said %q", said)
	}
	t.Setenv("FPATH", "")
	t.Setenv("ZDOTDIR", u.home+"/zsh")
	t.Setenv("XDG_DATA_HOME", "/"+filepath.Join(u.home, "it's mine")[1:])
	if _, said := u.install("zsh"); !strings.Contains(said, "~/zsh/.zshrc") || !strings.Contains(said, `fpath=('`+u.home+`/it'\''s mine/zsh/site-functions' $fpath)`) {
		t.Errorf("said %q", said)
	}
}

// TestInstallMistakes: an error is one line, and says what to do.
func TestInstallMistakes(t *testing.T) {
	u := newUser(t)
	u.write(filepath.Join(u.home, ".config"), "not a directory", 0o600)
	for _, test := range []struct{ args, want string }{
		{"--install", "neither bash nor zsh nor fish is in PATH: name one of them, as in 'watchkeeper completion --install bash'"},
		{"--install tcsh", `unknown shell "tcsh": use bash, zsh, fish or powershell (see 'watchkeeper completion --help')`},
		{"--install powershell", "--install cannot change the profile of PowerShell: add 'watchkeeper completion powershell | Out-String | Invoke-Expression' to the file $PROFILE"},
		{"--install fish", "install the completion for fish: mkdir " + u.home + "/.config: not a directory; use 'watchkeeper completion fish' to print it"},
		{"--install bash --no-descriptions", "--no-descriptions is for the script that is printed: leave it out with --install"},
		{"bash zsh", "completion prints the script of one shell, but got bash and zsh (see 'watchkeeper completion --help')"},
	} {
		if out, _, err := u.run(strings.Fields(test.args)...); err == nil || err.Error() != test.want || out != "" {
			t.Errorf("%s: %q, %v, want %s", test.args, out, err, test.want)
		}
	}
	u.expect(".config")
	t.Setenv("HOME", "")
	if _, _, err := u.run("--install", "bash"); err == nil || !strings.HasSuffix(err.Error(), "set HOME") {
		t.Error(err)
	}

	u = newUser(t, "bash")
	t.Setenv("SHELL", "/bin/tcsh")
	if _, said := u.install(); !strings.Contains(said, "There is nothing to install for tcsh, your shell: see 'watchkeeper completion --help'.\n") {
		t.Errorf("said %q", said)
	}
	u.expect(bashFile)
}

// TestInstallPlugin: the program that kubectl runs is next to the plugin, or in ~/.local/bin.
func TestInstallPlugin(t *testing.T) {
	const name = "kubectl_complete-watchkeeper"
	program := func(u *user, path string) {
		t.Helper()
		text, err := os.ReadFile(path)
		info, statErr := os.Lstat(path)
		if err != nil || statErr != nil || info.Mode() != 0o755 || !strings.HasPrefix(string(text), "#!/bin/sh\n") || !strings.HasSuffix(string(text), "\nexec kubectl-watchkeeper __complete \"$@\"\n") {
			t.Errorf("%s is %v %q (%v, %v)", path, info, text, err, statErr)
		}
	}
	t.Run("without kubectl", func(t *testing.T) {
		u := newUser(t, "watchkeeper")
		u.install("fish")
		u.expect(fishFile)
		if _, err := os.Stat(filepath.Join(u.bin, name)); err == nil {
			t.Error("the program was written")
		}
	})
	t.Run("beside the plugin", func(t *testing.T) {
		u := newUser(t, "kubectl-watchkeeper")
		for range 2 {
			out, said := u.install("fish")
			u.expect(fishFile)
			program(u, filepath.Join(u.bin, name))
			if !strings.HasSuffix(out, "\nkubectl  "+filepath.Join(u.bin, name)+"\n") || said != "" {
				t.Errorf("printed %q, and said %q", out, said)
			}
		}
	})
	t.Run("where it is", func(t *testing.T) {
		u := newUser(t, "kubectl-watchkeeper", "kubectl")
		// Through a link, the program itself would be overwritten.
		first := t.TempDir()
		if err := os.Symlink(filepath.Join(u.bin, "kubectl-watchkeeper"), filepath.Join(first, name)); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", first+":"+u.bin)
		u.install("fish")
		program(u, filepath.Join(first, name))
		if text, err := os.ReadFile(filepath.Join(u.bin, "kubectl-watchkeeper")); err != nil || string(text) != "#!/bin/sh\n" {
			t.Errorf("the plugin was overwritten: %q, %v", text, err)
		}
	})
	t.Run("beside the program", func(t *testing.T) {
		u := newUser(t, "watchkeeper", "kubectl")
		_, said := u.install("fish")
		program(u, filepath.Join(u.bin, name))
		if want := "There is no kubectl-watchkeeper in PATH, which is 'kubectl watchkeeper': make it with\n  ln -s " + u.bin + "/watchkeeper " + u.bin + "/kubectl-watchkeeper\n"; said != want {
			t.Errorf("said %q, want %q", said, want)
		}
	})
	t.Run("not beside the plugin", func(t *testing.T) {
		// As root, too: a directory is in the way.
		u := newUser(t, "kubectl-watchkeeper")
		u.write(filepath.Join(u.bin, name, "file"), "", 0o600)
		out, said := u.install("fish")
		u.expect(fishFile, ownPlugin)
		program(u, filepath.Join(u.home, ownPlugin))
		if !strings.HasSuffix(out, "\nkubectl  "+filepath.Join(u.home, ownPlugin)+"\n") || said != "kubectl does not find the file, as ~/.local/bin is not in PATH: add it.\n" {
			t.Errorf("printed %q, and said %q", out, said)
		}
		t.Setenv("PATH", u.bin+":"+filepath.Join(u.home, ".local/bin"))
		if _, said := u.install("fish"); said != "" {
			t.Errorf("said %q", said)
		}
		if left, err := filepath.Glob(filepath.Join(u.bin, ".*")); err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
	})
	t.Run("nowhere", func(t *testing.T) {
		u := newUser(t, "kubectl-watchkeeper")
		u.write(filepath.Join(u.bin, name, "file"), "", 0o600)
		u.write(filepath.Join(u.home, ".local"), "not a directory", 0o600)
		_, _, err := u.run("--install", "fish")
		if err == nil || !strings.HasSuffix(err.Error(), `put an executable file kubectl_complete-watchkeeper into a directory of PATH, with the lines '#!/bin/sh' and 'exec kubectl-watchkeeper __complete "$@"'`) {
			t.Error(err)
		}
	})
}
