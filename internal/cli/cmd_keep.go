package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
)

func keepCmd() *cobra.Command {
	var list, asJSON bool
	var end, older string
	cmd := &cobra.Command{
		Use:   "keep DB [NAME REV]",
		Short: "Keep versions for jobs, by name",
		Long: `Keep a version from expiring, under a name, until "keep DB --end NAME": for a job that lasts for days, or begins later.
A version that was kept under the name before may expire then. --older-than ends all that began before an age, such as 7d,
or a date. Without a name the command lists the versions that are kept. Clones, backups and pushes do not copy them.`,
		Example: `  zarrdb keep weather.zdb training main~3
  zarrdb keep weather.zdb --end training`,
		Args: func(cmd *cobra.Command, args []string) error {
			given := 0
			for _, is := range []bool{len(args) == 3, list, end != "", older != ""} {
				if is {
					given++
				}
			}
			if len(args) != 1 && len(args) != 3 || given > 1 {
				return usagef("keep: NAME and REV, --list, --end or --older-than must be given, and only one of them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			change := end != "" || older != "" || len(args) == 3
			open := readOnly
			if change {
				open = nil
			}
			return withOnlyDB(cmd, args[0], open, func(db *engine.DB) error {
				switch {
				case len(args) == 3:
					id, err := db.Resolve(ctx, args[2])
					if err != nil {
						return err
					}
					return db.Versions().KeepVersion(ctx, args[1], id, "")
				case end != "":
					return db.EndKept(ctx, end)
				}
				kept, err := db.KeptVersions(ctx)
				said := ""
				if older != "" {
					before, parseErr := parseAge(older, time.Now())
					if parseErr != nil {
						return usagef("--older-than: %w", parseErr)
					}
					kept, err = db.Versions().EndKeptBefore(ctx, before)
					said = "ended "
				}
				if err != nil {
					return err
				}
				for _, l := range kept {
					if asJSON {
						if err := printJSONLine(cmd, engine.KeptInfo{Name: l.Name, Commit: l.Commit.String(), Since: l.Time, By: l.Note}); err != nil {
							return err
						}
						continue
					}
					say(cmd, "%s%s %s", said, l.Name, keptLine(l.Commit.String(), l.Time, l.Note))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the versions that are kept")
	cmd.Flags().StringVar(&end, "end", "", "let the version expire that is kept under this name")
	cmd.Flags().StringVar(&older, "older-than", "", "let the versions expire that are kept since before: age, such as 7d or 12h, or a date")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

// keptLine describes a version that is kept by name.
func keptLine(commit string, since time.Time, by string) string {
	return fmt.Sprintf("%s since %s, for %s", short(commit), since.In(time.Local).Format(time.DateTime), by)
}
