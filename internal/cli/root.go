package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const rootHelp = `zarrdb is a versioned database for Zarr arrays that lives in a directory:
git's commits, branches, tags, diff and rollback; a database's transactions and
crash safety; and arrays that every Zarr program can read and write.

A TARGET is a place in a database or in any other store:

  weather.zdb                    the newest version on branch main
  weather.zdb:temp               the node temp in it
  weather.zdb@v1.0:temp          as of a branch, tag, commit, REV~N, REV^N or REV@{when}
  ./era5.zarr                    a Zarr directory (v1, v2, v3)
  file:///d/x.zip|zip:a/|zarr3:  a URL pipeline (ZEP 8)
  s3://bucket/weather@v1.0:temp  the same in a remote that "zarrdb push" has made

REV~N is the N-th commit before, REV^N the N-th parent of a merge, and REV@{when}
where a branch was N moves ago or at a time: main@{1}, 'main@{2 days ago}',
'main@{2026-01-31 12:00}' (local, or with a zone such as Z or +02:00).

A TARGET or DB that begins with : or @ is in the database of $ZARRDB_DB, or of the line
"database = DIR" of ~/.config/zarrdb/settings, which may have author, pager, progress
(yes or no) and wait too. $ZARRDB_PAGER or $PAGER shows long output, NO_COLOR=1 has no colours.

Names, messages and values are shown with control characters as \u001b or \n, so
that nothing in a store is obeyed by a terminal; --json says exactly what there is.

Exit codes: 0 fine, 1 failed, 2 usage, 3 conflict, 4 not found, 5 corrupt data,
130 interrupted.`

// Groups of the help page.
const (
	groupData     = "data"
	groupNodes    = "nodes"
	groupVersions = "versions"
	groupRaw      = "raw"
	groupCare     = "care"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "zarrdb",
		Short:         "A versioned database for Zarr arrays",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionText(),
	}
	grouping(root)
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		quiet(cmd, args)
		return applySettings(cmd)
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; see \"%s --help\"", err, cmd.CommandPath())
	})
	root.PersistentFlags().Bool("quiet", false, "show no progress and no notes, and nothing of a command that copies or writes but warnings and errors")
	root.PersistentFlags().Bool("no-progress", false, "show no progress on a terminal")
	root.PersistentFlags().Bool("no-pager", false, "show the output of log, diff, show, blame and reflog without a pager")
	root.PersistentFlags().Bool("progress-lines", false, "write progress as lines of JSON to the standard error, each after the byte 0x1e: for programs")
	_ = root.PersistentFlags().MarkHidden("progress-lines")
	root.PersistentFlags().Var(new(duration), "wait", "wait so long, `TIME` such as 30s or 5m, for another process that has a database open")
	root.AddGroup(
		&cobra.Group{ID: groupData, Title: "Data in and out:"},
		&cobra.Group{ID: groupNodes, Title: "Arrays and groups:"},
		&cobra.Group{ID: groupVersions, Title: "Versions:"},
		&cobra.Group{ID: groupRaw, Title: "Keys and URLs:"},
		&cobra.Group{ID: groupCare, Title: "Keeping it healthy:"},
	)
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupData, initCmd(), importCmd(), exportCmd(), readCmd(), plotCmd(), writeCmd(), serveCmd(), demoCmd())
	add(groupNodes, uiCmd(), lsCmd(), treeCmd(), infoCmd(), createCmd(), attrsCmd(), resizeCmd(), mvCmd(), cpCmd(), rmCmd())
	add(groupVersions, logCmd(), showCmd(), diffCmd(), blameCmd(), bisectCmd(), branchCmd(), tagCmd(), checkoutCmd(), commitCmd(), resetCmd(), revertCmd(), mergeCmd(), rebaseCmd(), cherryPickCmd(), eraseCmd(), reflogCmd(), undoCmd(), keepCmd(), sessionCmd(), cloneCmd(), pushCmd(), pullCmd(), fetchCmd())
	add(groupRaw, getCmd(), putCmd(), keysCmd(), catCmd(), urlCmd(), refsCmd())
	add(groupCare, statsCmd(), fsckCmd(), expireCmd(), gcCmd(), backupCmd(), restoreCmd())
	root.AddCommand(versionCmd(), remoteDirCmd())
	for _, c := range root.Commands() {
		c.SuggestFor = otherNames[c.Name()]
	}
	addDefault(root)
	addCompletion(root)
	root.InitDefaultHelpCmd()
	if c, _, err := root.Find([]string{"help"}); err == nil {
		c.Args = knownCommand
		man := c.Flags().String("man", "", "write the manual pages of all commands into `DIR`")
		help := c.Run
		c.Run, c.RunE = nil, func(cmd *cobra.Command, args []string) error {
			if *man != "" {
				return writeMan(root, *man)
			}
			help(cmd, args)
			return nil
		}
	}
	return root
}

// otherNames maps names of commands in other programs to ours, for suggestions.
var otherNames = map[string][]string{
	"init": {"new"}, "import": {"add", "append", "load"}, "export": {"convert", "dump", "save"}, "ls": {"list", "dir"},
	"info": {"describe"}, "mv": {"rename", "move"}, "cp": {"copy"}, "rm": {"delete", "remove"}, "stats": {"du"}, "commit": {"status"},
	"log": {"history"}, "reset": {"rollback"}, "session": {"begin"}, "fsck": {"check", "verify"}, "gc": {"prune", "vacuum"},
}

// knownCommand is for the help command, which helps with any command there is.
func knownCommand(cmd *cobra.Command, args []string) error {
	c, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = subcommandOnly(c, rest)
	}
	return err
}

// strictHelp has --help refuse a command that does not exist, where cobra shows the
// page of the command above. The error is there when the root was executed.
func strictHelp(root *cobra.Command) *error {
	var misnamed error
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd.HasSubCommands() {
			if misnamed = subcommandOnly(cmd, cmd.Flags().Args()); misnamed != nil {
				return
			}
		}
		show(cmd, args)
	})
	return &misnamed
}

// addCompletion adds the command that makes completion scripts for shells.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // it was just added
	}
	c.Short = "Make a script that completes commands in your shell"
	c.Example = "  source <(zarrdb completion bash)"
	grouping(c)
	if bash, _, err := c.Find([]string{"bash"}); err == nil {
		script := bash.RunE
		bash.RunE = func(cmd *cobra.Command, args []string) error {
			err := script(cmd, args)
			// A version is DB@REV: "@" ends no word.
			_, _ = io.WriteString(cmd.OutOrStdout(), "\nCOMP_WORDBREAKS=${COMP_WORDBREAKS//@/}\n") // the writer remembers the error
			return err
		}
	}
}

// grouping completes a command that only groups others.
func grouping(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = subcommandOnly
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(commands...)
	return cmd
}

// subcommandOnly is for commands that only group others.
func subcommandOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	msg := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	near := cmd.SuggestionsFor(args[0])
	slices.Sort(near)
	if near = slices.Compact(near); len(near) > 0 {
		msg += fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
	}
	return usagef("%s", msg)
}

// argCount checks the number of arguments.
func argCount(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
			return usagef("%s: %s given; usage: %s", name, count(int64(len(args)), "argument"), cmd.UseLine())
		}
		return nil
	}
}
