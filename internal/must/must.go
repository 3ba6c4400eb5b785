// Package must ends a test at an error that it does not expect.
package must

import "testing"

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
