// Package cache keeps decoded chunks in memory.
//
//	zarr.Array ── Get, Load ──▶ Cache ──▶ ristretto, by content id and codec
//	           ── Touch ──────▶ touches: was a part of the chunk wanted lately?
//
// A cached chunk never changes, so nothing is invalidated, and every snapshot, branch and
// session of a database shares one Cache. It may drop any chunk. The Caches of the databases of a
// process share one memory, unless they have sizes of their own.
package cache
