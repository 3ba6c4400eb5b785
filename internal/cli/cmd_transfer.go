package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/txn"
)

// transferFlags are the flags that all commands share which carry versions to another database.
type transferFlags struct {
	o    txn.TransferOptions
	json bool
}

func (f *transferFlags) add(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&f.o.SkipDamaged, "skip-damaged", false, "copy all but damaged chunks, which are then known holes")
	cmd.Flags().BoolVar(&f.json, "json", false, "print as JSON")
	return cmd
}

// run carries versions, shows progress and prints the report.
func (f *transferFlags) run(cmd *cobra.Command, did string, fn func(context.Context, txn.TransferOptions) (*txn.TransferReport, error)) error {
	r, err := f.carry(cmd, fn)
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(cmd, toTransferJSON(r))
	}
	printTransfer(cmd, did, r)
	return nil
}

// carry shows progress, and marks the error of an interrupted transfer that can
// be continued.
func (f *transferFlags) carry(cmd *cobra.Command, fn func(context.Context, txn.TransferOptions) (*txn.TransferReport, error)) (*txn.TransferReport, error) {
	if f.o.Depth < 0 || cmd.Flags().Changed("depth") && f.o.Depth == 0 {
		return nil, usagef("--depth: it must be at least 1")
	}
	bar := newPhases(cmd)
	defer bar.finish()
	o := f.o
	o.Progress = func(p txn.TransferProgress) {
		bar.lines.report(p.Phase, p.Done, p.Total)
		if p.Total == 0 {
			bar.update(p.Phase, p.Done)
			return
		}
		bar.say(fmt.Sprintf("%s %s of %s", p.Phase, size(p.Done), size(p.Total)))
	}
	r, err := fn(cmd.Context(), o)
	if errors.Is(err, context.Canceled) {
		err = againError{err}
	}
	return r, err
}

// againError is the error of interrupted work that the same command continues.
type againError struct{ error }

func (e againError) Unwrap() error { return e.error }

func printTransfer(cmd *cobra.Command, did string, r *txn.TransferReport) {
	for _, p := range r.Skipped {
		say(cmd, "left out: %s", fault.OneLine(p))
	}
	say(cmd, "%s %s: %s of index, %s of payloads; %s verified; %s moved", did, count(r.Commits, "version"),
		size(r.PageBytes), size(r.PayloadBytes), count(r.Verified, "payload"), count(int64(len(r.Moves)), "ref"))
	if r.Requests > 0 {
		say(cmd, "%s: %s sent, %s received", count(r.Requests, "request"), size(r.Sent), size(r.Received))
	}
	if r.Note != "" {
		warn(cmd, r.Note)
	}
	if r.Filled > 0 {
		say(cmd, "%s filled", count(r.Filled, "known hole"))
	}
	if r.Holes > 0 {
		say(cmd, "the destination has %s, which \"zarrdb fsck\" names; the same command fills them from a source that has the chunks", count(r.Holes, "known hole"))
	}
}

// transferJSON is a report as --json prints it.
type transferJSON struct {
	Commits      int64      `json:"commits"` // with contents
	Records      int64      `json:"records"` // commits without
	Pages        int64      `json:"pages"`
	PageBytes    int64      `json:"page_bytes"`
	Packs        int64      `json:"packs"`
	PayloadBytes int64      `json:"payload_bytes"`
	PresentBytes int64      `json:"present_bytes"`      // were there from a transfer that was interrupted
	Verified     int64      `json:"verified"`           // payloads
	Filled       int64      `json:"filled"`             // known holes
	Holes        int64      `json:"holes"`              // that are left
	Requests     int64      `json:"requests,omitempty"` // to a bucket, with bytes of objects
	Sent         int64      `json:"sent,omitempty"`
	Received     int64      `json:"received,omitempty"`
	Note         string     `json:"note,omitempty"`
	Moves        []moveJSON `json:"moves"`

	Merged *mergedJSON `json:"merged,omitempty"` // by pull --merge or --rebase
}

type moveJSON struct {
	Ref string `json:"ref"` // heads/BRANCH or tags/TAG
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

func toTransferJSON(r *txn.TransferReport) transferJSON {
	out := transferJSON{
		Commits: r.Commits, Records: r.Records, Pages: r.Pages, PageBytes: r.PageBytes, Packs: r.Packs,
		PayloadBytes: r.PayloadBytes, PresentBytes: r.PresentBytes, Verified: r.Verified,
		Filled: r.Filled, Holes: r.Holes, Requests: r.Requests, Sent: r.Sent, Received: r.Received, Note: r.Note, Moves: []moveJSON{},
	}
	text := func(id txn.CommitID) string {
		if id.IsZero() {
			return ""
		}
		return id.String()
	}
	for _, m := range r.Moves {
		out.Moves = append(out.Moves, moveJSON{m.Ref, text(m.Old), text(m.New)})
	}
	return out
}

func backupCmd() *cobra.Command {
	var f transferFlags
	cmd := f.add(&cobra.Command{
		Use:   "backup DB DEST",
		Short: "Copy all new data to a backup",
		Long: `Make a backup of a database in the directory DEST, or bring the one that is
there up to date: all versions, branches, tags and reflogs, as of one moment.
Only what is new is copied; each payload is read back and compared. A backup is
a database, and commands that read take it as one. Open sessions are
not part of it. An interrupted run leaves the last backup as it was.

If somebody committed to the backup, nothing is copied and the exit code is 3:
"zarrdb push DEST DB BRANCH:NAME" brings these commits to DB as the branch NAME, and
--force drops them.`,
		Example: `  zarrdb backup weather.zdb /mnt/disk/weather.zdb`,
		Args:    argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if engine.IsArchive(args[1]) {
				return usageError{fmt.Errorf("backup to %s: a backup is a directory; choose another name, and pack the directory when the backup is complete", args[1])}
			}
			if strings.Contains(args[1], "://") {
				return usagef("backup to %s: a backup is a directory of this machine; \"zarrdb push %s %s\" copies branches and tags to a bucket or a file server", args[1], args[0], args[1])
			}
			t, err := parseDB(args[0])
			if err == nil {
				err = t.wholeDB(cmd)
			}
			if err == nil && t.rev != "" {
				err = usagef("%s: it is about all versions, leave out @%s", cmd.CommandPath(), t.rev)
			}
			if err != nil {
				return err
			}
			db, err := local.OpenOrRead(cmd.Context(), t.db, shared(cmd, nil)) // it notes when it was backed up
			if err != nil {
				return err
			}
			noteOpen(db)
			defer db.Close()
			return f.run(cmd, "copied", func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
				return backup(ctx, cmd, db, args[1], o)
			})
		},
	})
	cmd.Flags().BoolVar(&f.o.Force, "force", false, "drop what was committed to the backup")
	return cmd
}

// backup copies to a backup that no process has open, or through the process that has it open. Another backup to the same place, which
// serves no other process, is waited for: for --wait, by default until it ends.
func backup(ctx context.Context, cmd *cobra.Command, db *engine.DB, dest string, o txn.TransferOptions) (*txn.TransferReport, error) {
	for told := false; ; told = true {
		r, err := db.Backup(ctx, dest, o)
		locked := (*engine.LockedError)(nil)
		if !errors.As(err, &locked) {
			return r, err
		}
		to, err := openDB(cmd, dest, nil)
		if err == nil {
			r, err = db.BackupTo(ctx, to, o)
			if err = errors.Join(err, to.Close()); !errors.Is(err, txn.ErrCollecting) {
				return r, err
			}
		}
		// It is not a database yet while the first backup to it runs.
		if !errors.Is(err, engine.ErrLocked) && !errors.Is(err, txn.ErrNotDatabase) && !errors.Is(err, txn.ErrCollecting) || cmd.Flag("wait").Changed {
			return nil, err
		}
		if !told {
			note(cmd, "waiting for the backup to %s that another process makes", dest)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func restoreCmd() *cobra.Command {
	var f transferFlags
	return f.add(&cobra.Command{
		Use:   "restore BACKUP DB",
		Short: "Make a database of a backup",
		Long: `Make the new database DB of a backup, with everything that is in it, and verify it.
Unpack a backup in a zip file into a directory first. The same command completes a
restore that was interrupted.`,
		Example: `  zarrdb restore /mnt/disk/weather.zdb weather.zdb`,
		Args:    argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if engine.IsDatabase(args[0]) {
				db, err := openDB(cmd, args[0], readOnly)
				if err != nil {
					return err
				}
				defer db.Close()
				return f.run(cmd, "restored", func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
					return db.RestoreTo(ctx, args[1], o)
				})
			}
			if f, err := os.Stat(args[0]); err == nil && !f.IsDir() {
				return fmt.Errorf("restore %s: %w: a backup is a directory; unpack a backup in a zip file into one", args[0], txn.ErrNotDatabase)
			}
			return f.run(cmd, "restored", func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
				return engine.Restore(ctx, args[0], args[1], alone(cmd, nil), o)
			})
		},
	})
}

func cloneCmd() *cobra.Command {
	var f transferFlags
	var most byteSize
	cmd := f.add(&cobra.Command{
		Use:   "clone DB NEW",
		Short: "Copy a database with its history",
		Long: `Make the new database NEW with the branches and tags of another and all of
their history, and verify it. Commits keep their ids, so that push and pull
between the two move only what is missing. DB may be the URL of a remote that "zarrdb
push" has made: s3://…, gs://… or file://….

--branch takes one branch, with the tags among its versions. --depth N takes the
contents of only the newest N versions of each branch or tag: older ones are in
the log, and cannot be opened. An interrupted clone is taken up by the same
command.

--lazy takes the history of a remote alone, in seconds for any size. Contents are
fetched when they are read, and stay; of chunks the last ones, up to --away-size. Without
the network, what was read before works.`,
		Example: `  zarrdb clone weather.zdb copy.zdb
  zarrdb clone weather.zdb small.zdb --branch main --depth 1
  zarrdb clone s3://bucket/weather weather.zdb
  zarrdb clone s3://bucket/weather weather.zdb --lazy`,
		Args: argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.o.AwaySize = int64(most); most > 0 && !f.o.Lazy {
				return usagef("%s: --away-size goes with --lazy", cmd.CommandPath())
			}
			if f.o.Lazy && (!engine.IsRemote(args[0]) || f.o.Depth > 0) {
				return usagef("%s: --lazy is for the URL of a remote, and goes without --depth", cmd.CommandPath())
			}
			if engine.IsRemote(args[0]) {
				return f.run(cmd, "copied", func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
					return engine.CloneRemote(ctx, args[0], args[1], alone(cmd, nil), o)
				})
			}
			return withOnlyDB(cmd, args[0], readOnly, func(db *engine.DB) error {
				return f.run(cmd, "copied", func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
					return db.Clone(ctx, args[1], o)
				})
			})
		},
	})
	cmd.Flags().StringVar(&f.o.Branch, "branch", "", "only this branch")
	cmd.Flags().IntVar(&f.o.Depth, "depth", 0, "how many generations of versions are copied with contents")
	cmd.Flags().BoolVar(&f.o.Lazy, "lazy", false, "leave the contents in the remote until they are read")
	cmd.Flags().Var(&most, "away-size", "with --lazy: keep at most `SIZE` of chunks that were fetched (default a tenth of the free disk)")
	return cmd
}
