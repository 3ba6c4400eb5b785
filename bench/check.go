package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/engine"
)

// A workload ends at its first error, as a benchmark of package testing does with Fatal:
//
//	run ──▶ attempt ──▶ workload ──▶ check, must
//	           ◀──────── panic of a failure

// failure is the panic of check.
type failure struct{ err error }

// check ends the workload if err is not nil.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns v, or ends the workload.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// attempt runs fn and returns the error that ended it.
func attempt(fn func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.err
		default:
			panic(r)
		}
	}()
	fn()
	return nil
}

// named runs a part of a workload, whose errors begin with its name.
func named(name string, fn func()) {
	if err := attempt(fn); err != nil {
		check(fmt.Errorf("%s: %w", name, err))
	}
}

// parallel runs n goroutines.
func parallel(n int, fn func(i int)) {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = attempt(func() { fn(i) }) })
	}
	wg.Wait()
	check(errors.Join(errs...))
}

// timed returns how long op takes each of n times.
func timed(n int, op func(i int)) []time.Duration {
	times := make([]time.Duration, n)
	for i := range times {
		start := time.Now()
		op(i)
		times[i] = time.Since(start)
	}
	return times
}

// took returns how long op takes.
func took(op func()) time.Duration { return timed(1, func(int) { op() })[0] }

// create makes a database, which remove closes and removes.
func (b *bench) create(ctx context.Context, name string) (db *engine.DB, remove func()) {
	dir := b.path(name)
	db = must(engine.Create(ctx, dir, nil))
	return db, func() {
		_ = db.Close()
		_ = os.RemoveAll(dir)
	}
}

// update commits the writes of fn to the branch main.
func update(ctx context.Context, db *engine.DB, message string, fn func(s *engine.Session)) {
	must(db.Update(ctx, "main", message, func(s *engine.Session) error {
		fn(s)
		return nil
	}))
}

// view runs fn on the newest version of the branch main.
func view(ctx context.Context, db *engine.DB, fn func(s *engine.Snapshot)) {
	check(db.View(ctx, "main", func(s *engine.Snapshot) error {
		fn(s)
		return nil
	}))
}

// readsBack ends the workload if the bytes read differ from the bytes written.
func readsBack(have, want []byte) {
	if !bytes.Equal(have, want) {
		check(errors.New("the field does not read back"))
	}
}
