package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/txn"
)

func bisectCmd() *cobra.Command {
	return grouping(&cobra.Command{
		Use:     "bisect",
		Short:   "Find the commit that introduced a change",
		Example: "  zarrdb bisect run weather.zdb v1.0 main -- ./is-it-fine.sh",
	}, bisectRunCmd())
}

func bisectRunCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "run DB GOOD BAD -- COMMAND [ARG…]",
		Short: "Search with a command that tests each version",
		Long: `Find the first bad version between GOOD and BAD by running a command on as few
as possible. The command gets the version to look at in the environment as
ZARRDB_REV, and the database as ZARRDB_DB; it may open it. It exits with 0 for
good, 125 if it cannot tell, any other code up to 127 for bad; more ends the
search. What it prints goes to standard error.`,
		Example: `  zarrdb bisect run weather.zdb v1.0 main -- ./is-it-fine.sh
  zarrdb bisect run w.zdb main~50 main -- sh -c 'zarrdb read "$ZARRDB_DB@$ZARRDB_REV:temp" -s 0 | grep -q 17'`,
		Args: argCount(4, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var b *txn.Bisection
			// The database is closed again before the command runs, which
			// could not open it otherwise.
			err := withOnlyDB(cmd, args[0], readOnly, func(db *engine.DB) (err error) {
				b, err = beginBisect(cmd.Context(), db, args[1], args[2])
				return err
			})
			if err != nil {
				return err
			}
			for id, ok := b.Next(); ok; id, ok = b.Next() {
				verdict, err := ask(cmd, args[0], id, args[3:])
				if err == nil {
					err = b.Mark(id, verdict)
				}
				if err != nil {
					return err
				}
				if !asJSON {
					say(cmd, "%s %s, %d left", id.Short(), verdictNames[verdict], b.Left())
				}
			}
			return printBisect(cmd, args[0], b, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}

var verdictNames = map[txn.Verdict]string{txn.Good: "good", txn.Bad: "bad", txn.Skip: "skipped"}

func beginBisect(ctx context.Context, db *engine.DB, good, bad string) (*txn.Bisection, error) {
	g, err := db.Resolve(ctx, good)
	if err != nil {
		return nil, err
	}
	b, err := db.Resolve(ctx, bad)
	if err != nil {
		return nil, err
	}
	return db.Versions().Bisect(ctx, []txn.CommitID{g}, b)
}

// ask runs the command on a version.
func ask(cmd *cobra.Command, db string, id txn.CommitID, args []string) (txn.Verdict, error) {
	c := exec.CommandContext(cmd.Context(), args[0], args[1:]...)
	c.Env = append(os.Environ(), "ZARRDB_REV="+id.String(), "ZARRDB_DB="+db)
	c.Stdout, c.Stderr = cmd.ErrOrStderr(), cmd.ErrOrStderr()
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return txn.Good, nil
	case cmd.Context().Err() != nil:
		return 0, cmd.Context().Err()
	case !errors.As(err, &exit):
		return 0, fmt.Errorf("bisect: %w", err)
	case exit.ExitCode() == 125:
		return txn.Skip, nil
	case 0 < exit.ExitCode() && exit.ExitCode() < 128:
		return txn.Bad, nil
	}
	return 0, fmt.Errorf("bisect: at %s: %s: %w", id.Short(), args[0], err)
}

func printBisect(cmd *cobra.Command, db string, b *txn.Bisection, asJSON bool) error {
	first, others := b.Result()
	return withOnlyDB(cmd, db, readOnly, func(db *engine.DB) error {
		c, err := db.Versions().Lookup(cmd.Context(), first)
		if err != nil {
			return err
		}
		if asJSON {
			out := struct {
				report.Commit
				Others []string `json:"or_one_of"`
			}{report.NewCommit(c), []string{}}
			for _, id := range others {
				out.Others = append(out.Others, id.String())
			}
			return printJSON(cmd, out)
		}
		if len(others) == 0 {
			say(cmd, "%s is the first bad version\n", first.Short())
		} else {
			say(cmd, "%s or one of these that were skipped is the first bad version:", first.Short())
			for _, id := range others {
				say(cmd, "%s", id.Short())
			}
			say(cmd, "")
		}
		names, err := refNames(cmd, db)
		if err != nil {
			return err
		}
		printCommit(cmd, report.NewCommit(c), names[c.ID.String()])
		return nil
	})
}
