package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
)

// steps are the parts of a run that are done, and their rows.
type steps struct {
	Done []string
	Rows []*measure
}

// load takes over the steps of an earlier run.
func (b *bench) load() error {
	if b.kept == "" {
		return nil
	}
	text, err := os.ReadFile(b.kept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &b.part)
	}
	return err
}

// step does a part of the run, unless an earlier run has done it. The rows of a part that
// fails are not kept.
func (b *bench) step(name string, do func()) {
	if slices.Contains(b.part.Done, name) {
		return
	}
	do()
	b.part.Done = append(b.part.Done, name)
	if b.kept == "" {
		return
	}
	check(os.WriteFile(b.kept, must(json.Marshal(b.part)), 0o644))
}
