// Package modeltest compares a database with a plain model of it. It has tests
// only, and uses only the public API.
//
// A history is a list of random steps. Each step does one thing to the database
// and the same to the model:
//
//	step ──▶ engine.DB, Session, Snapshot …     under test
//	  └────▶ tree of nodes, arrays of chunks    plain Go maps (tree, array)
//	                │
//	compare ◀───────┘ values, attributes, refs, and every copy made
//
// All features run on several databases at once, through the process that has a database open or
// through a peer of it, and such a process is killed, because the
// bugs that tests of one feature cannot find lie between two of them: a read that
// leaves something in a cache, and a backup that trusts it.
//
// A step draws its random numbers from the seed and its own number alone, so
// that steps can be left out without changing other steps. A failing history is
// shortened in this way and printed as a list of its steps.
package modeltest
