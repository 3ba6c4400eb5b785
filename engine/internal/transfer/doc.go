// Package transfer has the code that import, append, link, export and localize share:
// how many values are carried from one store to another in bounded memory.
//
//	listing ── Batches ──▶ some thousand keys ── EachValue ──▶ fn(key, bytes), several at a time
//	                                                └─ Pool: bounded workers
//	one goroutine fills ── Relay ──▶ batches ──▶ the caller's uses them
//	SetValue, Holds, ViewWhole: one value, in pieces where both sides can
//	Meter: what was done, reported as Progress
//
// The package knows keys and bytes. Package engine knows their meaning.
package transfer
