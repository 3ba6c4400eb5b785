// Package must ends a test at an error that it does not expect.
package must

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Do ends the test if err is not nil.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns a function that returns v, or ends the test if err is not nil:
//
//	db := must.Get(Open(dir))(t)
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}

// Set sets a variable until the test has ended, including cleanups that are registered later:
// a server that a test starts afterwards has ended when the variable has its old value again.
func Set[T any](t testing.TB, p *T, v T) {
	t.Helper()
	was := *p
	t.Cleanup(func() { *p = was })
	*p = v
}

// Have returns v, and panics if err is not nil. It is for values of variables and tables, which
// are made without a test.
func Have[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Seed returns the seed of a random test, and logs it. It follows from the name of the test,
// so that a change is judged by the histories that its predecessors passed. ZARRDB_SEED names
// another one; "random" asks for a new one in each run, as `make random` does.
func Seed(t testing.TB) uint64 {
	t.Helper()
	var seed uint64
	switch text := os.Getenv("ZARRDB_SEED"); text {
	case "":
		h := fnv.New64a()
		h.Write([]byte(t.Name()))
		seed = h.Sum64()
	case "random":
		seed = rand.Uint64()
	default:
		seed = Get(strconv.ParseUint(text, 0, 64))(t)
	}
	t.Logf("ZARRDB_SEED=%d", seed)
	return seed
}
