// Command arrays writes and reads many arrays through a database at once, for
// the comparison with other implementations (../matrix.py).
//
//	arrays write DB DEST   makes the arrays of the jobs and exports them
//	arrays read STORE      imports the store and prints what its arrays hold
//	arrays convert STORE DEST 2|3
//	                       exports each array to another format
//
// Jobs are lines of JSON on standard input. read prints, for each, a line with
// the path and the SHA-256 of the elements: C order and little-endian, or one
// JSON value a line.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// job is one array.
type job struct {
	Path   string            `json:"path"`
	Docs   map[string]string `json:"docs"`   // metadata by name
	Values string            `json:"values"` // file with the elements, as read prints them
}

// answer is what became of one array.
type answer struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256,omitempty"`
	Error  string `json:"error,omitempty"`
}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "arrays:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 3 && args[0] == "write":
		return write(ctx, args[1], args[2], in, out)
	case len(args) == 2 && args[0] == "read":
		return read(ctx, args[1], in, out)
	case len(args) == 4 && args[0] == "convert":
		return convert(ctx, args[1], args[2], args[3], in, out)
	}
	return errors.New("usage: arrays write DB DEST | arrays read STORE | arrays convert STORE DEST 2|3")
}

// each calls fn for every job and prints its answers.
func each(in io.Reader, out io.Writer, fn func(job) (sum string, err error)) error {
	dec, w := json.NewDecoder(bufio.NewReader(in)), bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	for {
		var j job
		err := dec.Decode(&j)
		if errors.Is(err, io.EOF) {
			return w.Flush()
		}
		if err != nil {
			return err
		}
		a := answer{Path: j.Path}
		if a.SHA256, err = fn(j); err != nil {
			a.Error = err.Error()
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
	}
}

func write(ctx context.Context, dir, dest string, in io.Reader, out io.Writer) error {
	db, err := engine.Open(context.Background(), dir, &engine.Options{Create: true})
	if err != nil {
		return err
	}
	_, err = db.Update(ctx, "main", "arrays", func(s *engine.Session) error {
		return each(in, out, func(j job) (string, error) { return "", writeArray(ctx, s, j) })
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	src, err := engine.OpenDatabaseSource(ctx, dir, "main", "", "", nil)
	if err != nil {
		return err
	}
	defer src.Close()
	_, err = engine.Export(ctx, src, dest, engine.ExportOptions{})
	return err
}

func convert(ctx context.Context, store, dest, format string, in io.Reader, out io.Writer) error {
	to, ok := map[string]zarr.Version{"2": zarr.V2, "3": zarr.V3}[format]
	if !ok {
		return fmt.Errorf("format %q is neither 2 nor 3", format)
	}
	return each(in, out, func(j job) (string, error) {
		src, err := engine.OpenSource(ctx, filepath.Join(store, j.Path), nil)
		if err != nil {
			return "", err
		}
		defer src.Close()
		_, err = engine.Export(ctx, src, filepath.Join(dest, j.Path), engine.ExportOptions{Format: to, Recode: true})
		return "", err
	})
}

func writeArray(ctx context.Context, s *engine.Session, j job) error {
	for name, doc := range j.Docs {
		if err := s.Set(ctx, j.Path+"/"+name, []byte(doc)); err != nil {
			return err
		}
	}
	a, err := s.Array(ctx, j.Path)
	if err != nil {
		return errors.Join(err, s.Remove(ctx, j.Path))
	}
	b, err := os.ReadFile(j.Values)
	if err != nil {
		return err
	}
	if !a.Type().Variable() {
		return a.WriteBytes(ctx, zarr.Sel(), b)
	}
	v, err := variable(a.Type(), b)
	if err != nil {
		return err
	}
	return a.WriteVar(ctx, zarr.Sel(), v)
}

// variable makes elements of lines of JSON.
func variable(t dtype.Type, text []byte) (dtype.Variable, error) {
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(text) == 0 {
		lines = nil
	}
	b, err := dtype.NewBuilder(nil, len(lines))
	if err != nil {
		return dtype.Variable{}, err
	}
	for _, line := range lines {
		elem, err := t.ParseJSON(nil, []byte(line))
		if err != nil {
			return dtype.Variable{}, fmt.Errorf("%q: %w", line, err)
		}
		if err := b.Append(elem); err != nil {
			return dtype.Variable{}, err
		}
	}
	buf, err := b.Finish()
	if err != nil {
		return dtype.Variable{}, err
	}
	return dtype.OpenVariable(buf, len(lines))
}

func read(ctx context.Context, store string, in io.Reader, out io.Writer) error {
	dir, err := os.MkdirTemp("", "arrays-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := engine.Create(context.Background(), dir+"/in.zdb", nil)
	if err != nil {
		return err
	}
	defer db.Close()
	src, err := engine.OpenSource(ctx, store, nil)
	if err != nil {
		return err
	}
	defer src.Close()
	if _, err := db.Import(ctx, src, engine.ImportOptions{Message: "theirs"}); err != nil {
		return err
	}
	return db.View(ctx, "main", func(s *engine.Snapshot) error {
		return each(in, out, func(j job) (string, error) { return sum(ctx, s, j.Path) })
	})
}

// sum is the SHA-256 of the elements of an array.
func sum(ctx context.Context, s *engine.Snapshot, path string) (string, error) {
	a, err := s.Array(ctx, path)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if !a.Type().Variable() {
		size := int64(a.Type().Size())
		for _, n := range a.Shape() {
			size *= n
		}
		b := make([]byte, size)
		if err := a.ReadBytes(ctx, zarr.Sel(), b); err != nil {
			return "", err
		}
		h.Write(b)
		return hex.EncodeToString(h.Sum(nil)), nil
	}
	v, err := a.ReadVar(ctx, zarr.Sel())
	if err != nil {
		return "", err
	}
	var line []byte
	for i := range v.Len() {
		if line, err = a.Type().AppendJSON(line[:0], v.At(i)); err != nil {
			return "", err
		}
		h.Write(append(line, '\n'))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
