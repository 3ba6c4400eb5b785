// Command ocdbt reads OCDBT stores through package formats/ocdbt and without a database.
//
//	ocdbt DIR     prints the contents of all generations, newest first
//
// They are {"version", "time", "values"}, one line each, with keys and values in base64.
// Generations are printed once with all values, and reading fails unless Changes leads
// from each to the next.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/zarrdb/zarrdb/formats/ocdbt"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/refs"
)

func main() {
	ctx := context.Background()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: ocdbt DIR")
		os.Exit(2)
	}
	if err := read(ctx, os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ocdbt:", err)
		os.Exit(1)
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
