// Package leaktest fails the tests of a package whose goroutines go on after them:
//
//	func TestMain(m *testing.M) { leaktest.Main(m) }
//
//	tests ──▶ goroutines that are ending ──▶ none ──▶ exit code of the tests
//	                  │ a minute
//	                  └──▶ 1, and their stacks
//
// Some goroutines end by themselves a moment after the object that they serve, for
// example after a connection was closed. On a busy machine that moment is longer than
// the half second that goleak waits by itself.
package leaktest

import (
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end.
var patience = time.Minute

// Main runs the tests of m, waits up to a minute for the end of all other goroutines, and
// exits: with code 1 if some go on after tests that passed.
func Main(m goleak.TestingM) { goleak.VerifyTestMain(patient{m}) }

// patient are tests that end with their goroutines.
type patient struct{ goleak.TestingM }

// Run implements [goleak.TestingM].
func (p patient) Run() int {
	code := p.TestingM.Run()
	for begun := time.Now(); code == 0 && goleak.Find() != nil && time.Since(begun) < patience; {
	}
	return code
}
