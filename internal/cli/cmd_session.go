package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

func sessionCmd() *cobra.Command {
	return grouping(&cobra.Command{
		Use:   "session",
		Short: "Transactions that span several commands",
		Long: `A session collects changes that become one commit. Writing commands take part
with --session ID; their changes are visible only in the session until the commit.`,
		Example: `  id=$(zarrdb session begin weather.zdb)
  zarrdb write weather.zdb:temp --session $id --select 0 -i t0.npy
  zarrdb session commit weather.zdb $id -m "first day"`,
	}, sessionBegin(), sessionCommit(), sessionAbort(), sessionList())
}

func sessionBegin() *cobra.Command {
	return &cobra.Command{
		Use:   "begin DB[@BRANCH]",
		Short: "Open a session and print its id",
		Long: `Open a session on a branch (default main) and print its id, for --session ID of
every writing command.`,
		Example: `  id=$(zarrdb session begin weather.zdb)`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDB(cmd, args[0], nil, func(t target, db *engine.DB) error {
				s, err := db.Begin(cmd.Context(), t.rev)
				if err != nil {
					return onlyBranches(db, t.rev, err)
				}
				if err := s.Detach(cmd.Context()); err != nil {
					return err
				}
				say(cmd, "%v", s.ID())
				return nil
			})
		},
	}
}

// onSession resumes the session that the second argument names.
func onSession(cmd *cobra.Command, args []string, fn func(*engine.Session) error) error {
	id, err := txn.ParseSessionID(args[1])
	if err != nil {
		return err
	}
	return withOnlyDB(cmd, args[0], nil, func(db *engine.DB) error {
		s, err := db.Resume(cmd.Context(), id)
		if err != nil {
			return err
		}
		return fn(s)
	})
}

func sessionCommit() *cobra.Command {
	var o txn.CommitOptions
	var flags choiceFlags
	cmd := &cobra.Command{
		Use:   "commit DB ID -m MSG",
		Short: "Publish a session as one commit",
		Long: `Publish everything that was written into a session as one commit. If its branch
has moved since, the changes of both are merged; where they touch each other,
the conflicts are listed (exit code 3) and the session stays open, unless --ours or
--theirs say for its path what to take: ours is what the branch has, theirs what
the session wrote.`,
		Example: `  zarrdb session commit weather.zdb $id -m "first day"
  zarrdb session commit weather.zdb $id --theirs temp -m "first day"`,
		Args: argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			choices, err := flags.choices(cmd)
			if err != nil {
				return err
			}
			o.Choices, o.Decided, o.DryRun = choices, flags.note, flags.dryRun
			return onSession(cmd, args, func(s *engine.Session) error {
				base := s.Base()
				c, err := s.Commit(cmd.Context(), o)
				if err == nil {
					flags.healed = s.Versions().Healed()
				}
				return flags.told(cmd, s.Branch(), c, base, err)
			})
		},
	}
	commitFlags(cmd, &o.Message, &o.Author)
	flags.register(cmd)
	return cmd
}

func sessionAbort() *cobra.Command {
	var older string
	cmd := &cobra.Command{
		Use:   "abort DB [ID]",
		Short: "Forget sessions",
		Long: `End a session and discard its changes, or with --older-than all that were last used
before that: begun, opened, written to or saved. An age is a number with s, m, h, d or
w, or a date. Programs that still use such a session get an error.`,
		Example: `  zarrdb session abort weather.zdb $id
  zarrdb session abort weather.zdb --older-than 7d`,
		Args: argCount(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 2) == (older != "") {
				return usagef("session abort: an ID or --older-than must be given, and not both")
			}
			if older == "" {
				id, err := txn.ParseSessionID(args[1])
				if err != nil {
					return err
				}
				return withOnlyDB(cmd, args[0], nil, func(db *engine.DB) error { return db.AbortSession(cmd.Context(), id) })
			}
			before, err := parseAge(older, time.Now())
			if err != nil {
				return usagef("--older-than: %w", err)
			}
			return withOnlyDB(cmd, args[0], nil, func(db *engine.DB) error {
				ended, err := db.AbortSessions(cmd.Context(), before)
				for _, s := range ended {
					say(cmd, "aborted %s", sessionLine(s))
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&older, "older-than", "", "all sessions last used before: age, such as 7d or 12h, or a date")
	return cmd
}

// sessionLine describes a session on one line.
func sessionLine(s engine.SessionInfo) string {
	at := func(t time.Time) string { return t.In(time.Local).Format(time.DateTime) }
	saved := "not saved"
	if !s.Saved.IsZero() {
		saved = "saved " + at(s.Saved)
	}
	return strings.TrimRight(fmt.Sprintf("%v %s from %s, %s, used %s, by %v %s", s.ID, s.Branch, s.Base.Short(), saved, at(s.Used), s.By, s.Label), " ")
}

func sessionList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list DB",
		Short:   "List open sessions",
		Long:    "List the sessions that were begun and neither committed nor aborted, imports that were interrupted included, when each was used last, and by which program it was begun.",
		Example: `  zarrdb session list weather.zdb`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withOnlyDB(cmd, args[0], readOnly, func(db *engine.DB) error {
				list, err := db.Sessions(cmd.Context())
				if err != nil {
					return err
				}
				for _, s := range list {
					if asJSON {
						by := s.By.Named()
						fields := map[string]any{
							"program": by.Program, "host": by.Host, "pid": by.PID, "user": by.User,
							"id": s.ID.String(), "branch": s.Branch, "base": s.Base.String(), "label": s.Label,
							"created": s.Created, "used": s.Used,
						}
						if !s.Saved.IsZero() {
							fields["saved"] = s.Saved
						}
						if err := printJSONLine(cmd, fields); err != nil {
							return err
						}
						continue
					}
					say(cmd, "%s", sessionLine(s))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}
