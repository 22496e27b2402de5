// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package completion

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// generators write the script of a shell.
var generators = map[string]func(root *cobra.Command, w io.Writer, descriptions bool) error{
	"bash": func(root *cobra.Command, w io.Writer, descriptions bool) error {
		return root.GenBashCompletionV2(w, descriptions)
	},
	"zsh": func(root *cobra.Command, w io.Writer, descriptions bool) error {
		if descriptions {
			return root.GenZshCompletion(w)
		}
		return root.GenZshCompletionNoDesc(w)
	},
	"fish": func(root *cobra.Command, w io.Writer, descriptions bool) error {
		return root.GenFishCompletion(w, descriptions)
	},
	powershell: func(root *cobra.Command, w io.Writer, descriptions bool) error {
		if descriptions {
			return root.GenPowerShellCompletionWithDesc(w)
		}
		return root.GenPowerShellCompletion(w)
	},
}

const (
	powershell = "powershell"
	shells     = "bash, zsh, fish or powershell"
)

// Command returns the command "completion", which takes the place of cobra's. It prints the
// script of a shell, or installs it.
func Command() *cobra.Command {
	var install, noDescriptions bool
	cmd := &cobra.Command{
		Use:   "completion [bash|zsh|fish|powershell]",
		Short: "Print the completion script of a shell, or install it",
		Long: `Print the completion script of a shell: bash (with the package bash-completion),
zsh, fish or powershell.

With --install, write the scripts of the named shells, of bash, zsh and fish, to
where these shells look for a user's completions, and kubectl_complete-watchkeeper
to where kubectl finds it, to complete "kubectl watchkeeper". Without a name, these
are the shells that this machine has. No other file is changed.`,
		Example: `  watchkeeper completion --install
  watchkeeper completion --install zsh
  source <(watchkeeper completion bash)`,
		ValidArgs: []string{"bash", "zsh", "fish", powershell},
		Args: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if generators[name] == nil {
					return fmt.Errorf("unknown shell %q: use %s (see '%s --help')", name, shells, cmd.CommandPath())
				}
			}
			if len(args) > 1 && !install {
				return fmt.Errorf("completion prints the script of one shell, but got %s (see '%s --help')", strings.Join(args, " and "), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case install && noDescriptions:
				return errors.New("--no-descriptions is for the script that is printed: leave it out with --install")
			case install && slices.Contains(args, powershell):
				return fmt.Errorf("--install cannot change the profile of PowerShell: add '%s | Out-String | Invoke-Expression' to the file $PROFILE", cmd.CommandPath()+" "+powershell)
			case install:
				return newInstallation(cmd).run(args)
			case len(args) == 0:
				return cmd.Help()
			}
			return generators[args[0]](cmd.Root(), cmd.OutOrStdout(), !noDescriptions)
		},
	}
	cmd.Flags().BoolVar(&install, "install", false, "write the scripts to where the shells, and kubectl, look for them")
	cmd.Flags().BoolVar(&noDescriptions, "no-descriptions", false, "complete without descriptions")
	return cmd
}
