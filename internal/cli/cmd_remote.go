package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

// remoteDirCmd is for programs that read a remote by its URL through the process that has its cache open.
func remoteDirCmd() *cobra.Command {
	var known bool
	cmd := &cobra.Command{
		Use:     "remote-dir TARGET",
		Short:   "Print where the cache of a remote is, which it makes or brings up to date",
		Example: "  zarrdb remote-dir s3://bucket/weather",
		Args:    argCount(1, 1),
		Hidden:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			t := parseTarget(args[0])
			if t.failed != nil {
				return t.failed
			}
			if !engine.IsRemote(t.db) {
				return fmt.Errorf("%s: no remote is there: %w", args[0], txn.ErrNotDatabase)
			}
			dir := ""
			if known {
				dir = engine.RemoteCacheDir(t.db)
			}
			if dir == "" {
				db, err := openDB(cmd, t.db, readOnly)
				if err != nil {
					return err
				}
				defer db.Close()
				dir = db.Dir()
			}
			return printJSON(cmd, map[string]string{"url": t.db, "dir": dir}) // TARGET begins with the URL
		},
	}
	cmd.Flags().BoolVar(&known, "known", false, "if there is a cache, leave it as it is")
	return cmd
}

func fetchCmd() *cobra.Command {
	var parts []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "fetch DB --payloads REV[:PATH]",
		Short: "Fetch what a lazy clone will need offline",
		Long: `Fetch all chunks and other values at or below a node of a version from the remote
of a lazy clone, and compare them with their hashes. Neighbours come together, in
ranges of up to 8 MiB. What is here is not fetched again: the same command continues one
that was interrupted. DB may be the URL of a remote too.`,
		Example: `  zarrdb fetch weather.zdb --payloads v1.0:t2m
  zarrdb fetch s3://bucket/weather --payloads main`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(parts) == 0 {
				return usagef("%s: --payloads says of which version; branches and tags come with \"zarrdb pull\"", cmd.CommandPath())
			}
			return withOnlyDB(cmd, args[0], readOnly, func(db *engine.DB) error {
				for _, part := range parts {
					if err := fetchPayloads(cmd, db, part, asJSON); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringArrayVar(&parts, "payloads", nil, "a version, or a node in it, `REV[:PATH]`; may be repeated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON, one object a line")
	return cmd
}

func fetchPayloads(cmd *cobra.Command, db *engine.DB, part string, asJSON bool) error {
	t := targetAt("@"+part, 0)
	id, err := db.Resolve(cmd.Context(), t.rev)
	if err != nil {
		return err
	}
	bar := newPhases(cmd)
	r, err := db.FetchPayloads(cmd.Context(), txn.FetchPayloadsOptions{Commit: id, Path: t.path, Progress: func(r txn.FetchPayloadsReport) {
		bar.say(fmt.Sprintf("fetch %s of %s", size(r.Bytes), size(r.Total)))
	}})
	bar.finish()
	switch {
	case errors.Is(err, context.Canceled):
		return againError{err}
	case err != nil:
		return err
	case asJSON:
		return printJSON(cmd, map[string]any{"commit": id.String(), "path": t.path, "payloads": r.Payloads, "bytes": r.Bytes, "fetched": r.Fetched, "requests": r.Requests, "received": r.Received})
	}
	say(cmd, "%s: %s are here, %s fetched", count(r.Payloads, "payload"), size(r.Bytes), size(r.Fetched))
	if r.Requests > 0 {
		say(cmd, "%s: %s received", count(r.Requests, "request"), size(r.Received))
	}
	return nil
}

// byteSize is the value of a flag: a number of bytes, such as 500MB, 10GiB or 4096.
type byteSize int64

func (b *byteSize) String() string {
	if *b == 0 {
		return ""
	}
	return size(int64(*b))
}

func (b *byteSize) Type() string { return "size" }

func (b *byteSize) Set(s string) error {
	number := strings.TrimRight(s, "KMGTPiB ")
	v, err := strconv.ParseFloat(number, 64)
	unit, decimal := strings.TrimSuffix(strings.TrimSpace(s[len(number):]), "B"), 1000.0
	if u, binary := strings.CutSuffix(unit, "i"); binary {
		unit, decimal = u, 1024
	}
	power := strings.Index("KMGTP", unit) + 1
	if unit == "" {
		power = 0
	}
	v *= math.Pow(decimal, float64(power))
	if err != nil || len(unit) > 1 || power == 0 && unit != "" || !(v >= 1 && v < 1<<62) {
		return errors.New("a size such as 500MB or 10GiB is due")
	}
	*b = byteSize(v)
	return nil
}
