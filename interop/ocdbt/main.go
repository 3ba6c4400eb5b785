// Command ocdbt writes and reads OCDBT stores through package formats/ocdbt and without
// a database, in settings that the command line of zarrdb does not have.
//
//	ocdbt write DIR    a new store of the history on standard input
//	ocdbt read DIR     prints the contents of all generations, newest first
//
// A history is {"options": {…}, "commits": [{"time": nanoseconds, "changes": {KEY: VALUE}}]},
// a value null where the key is deleted; contents are {"version", "time", "values"}, one
// line each. Keys and values are in base64, values of null are missing. Generations are
// printed once with all values, and reading fails unless Changes leads from each to the
// next.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"time"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/ocdbt"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/refs"
)

func main() {
	ctx := context.Background()
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "write":
		err = write(ctx, os.Args[2], os.Stdin)
	case len(os.Args) == 3 && os.Args[1] == "read":
		err = read(ctx, os.Args[2], os.Stdout)
	default:
		fmt.Fprintln(os.Stderr, "usage: ocdbt write|read DIR")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ocdbt:", err)
		os.Exit(1)
	}
}

type commit struct {
	Time    int64
	Changes map[string][]byte
}

func write(ctx context.Context, dir string, in io.Reader) (err error) {
	var history struct {
		Options ocdbt.WriterOptions
		Commits []commit
	}
	if err := json.NewDecoder(in).Decode(&history); err != nil {
		return err
	}
	files, err := dirkv.Create(dir, &dirkv.Options{NoSync: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	w, err := ocdbt.NewWriter(files, &history.Options)
	if err != nil {
		return err
	}
	v := formats.Version{}
	for _, c := range history.Commits {
		v.Time = time.Unix(0, c.Time)
		id, err := w.Commit(ctx, v, changes(c))
		if err != nil {
			return err
		}
		v.Parents = []string{id}
	}
	return w.Finish(ctx, nil)
}

func changes(c commit) iter.Seq2[formats.Change, error] {
	return func(yield func(formats.Change, error) bool) {
		for key, value := range c.Changes {
			raw, err := base64.StdEncoding.DecodeString(key)
			change := formats.Change{Entry: refs.Entry{Key: string(raw), Reference: refs.Reference{Data: value}}, Deleted: value == nil}
			if !yield(change, err) || err != nil {
				return
			}
		}
	}
}

func read(ctx context.Context, dir string, to io.Writer) error {
	files, err := dirkv.Open(dir, &dirkv.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer files.Close()
	newest, err := ocdbt.Open(ctx, files, nil)
	if err != nil {
		return err
	}
	out := json.NewEncoder(to)
	var after map[string][]byte
	afterID := ""
	for v, err := range newest.History(ctx) {
		if err != nil {
			return err
		}
		set, err := newest.At(ctx, v.ID)
		if err != nil {
			return err
		}
		values := map[string][]byte{}
		for e, err := range set.Entries(ctx) {
			if err == nil {
				values[e.Key], err = value(ctx, files, e.Reference)
			}
			if err != nil {
				return err
			}
		}
		if err := out.Encode(map[string]any{"version": v.ID, "time": v.Time.UnixNano(), "values": coded(values)}); err != nil {
			return err
		}
		if after != nil {
			next, err := newest.At(ctx, afterID)
			if err != nil {
				return err
			}
			got := maps.Clone(values)
			for c, err := range next.Changes(ctx, v.ID) {
				if err == nil && c.Deleted {
					delete(got, c.Key)
				} else if err == nil {
					got[c.Key], err = value(ctx, files, c.Reference)
				}
				if err != nil {
					return err
				}
			}
			if !maps.EqualFunc(got, after, bytes.Equal) {
				return fmt.Errorf("changes do not lead from %s to %s", v.ID, afterID)
			}
		}
		after, afterID = values, v.ID
	}
	return nil
}

func value(ctx context.Context, files kv.Reader, r refs.Reference) ([]byte, error) {
	if r.Inline() {
		return r.Data, nil
	}
	return files.Get(ctx, r.URL, kv.Span(r.Offset, r.Length))
}

func coded(values map[string][]byte) map[string][]byte {
	out := map[string][]byte{}
	for key, b := range values {
		out[base64.StdEncoding.EncodeToString([]byte(key))] = b
	}
	return out
}
