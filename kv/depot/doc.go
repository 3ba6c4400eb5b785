// Package depot keeps the pages, payloads and refs of a database in a bucket, or in any other
// store with conditional writes ([kv.Conditional]). It knows neither trees nor databases:
// pages and commits are bytes with a name, payloads are ranges of packs.
//
//	manifest   the only object that is ever replaced: refs, and the list of bundles
//	b/…        bundles: pages, commit records, moves of refs, and an index of them and of ranges
//	s/…        segments: ranges of packs
//
// Names of bundles and segments are never used twice. A [Push] uploads both, and then
// replaces the manifest by one conditional write: from that moment on its whole contents are
// in the depot, or nothing of them.
//
//	d, err := depot.Open(ctx, store, nil)
//	p := d.Begin()                                  // the moment that the plan is of
//	seg, err := p.Segment(ranges)
//	err = p.Publish(ctx, depot.Change{Segments: …, Pages: …, Commits: …, Refs: …})
//
// A push may rely only on commits that the depot lists as complete: the depot has everything
// below such a commit.
//
// Two numbers in the manifest make this safe beside a collection, without clocks, locks and
// lists of objects. Names begin with the generation at which a push began; only
// unlisted objects older than the floor are ever deleted, and no push that began before
// the floor publishes. A collection that takes entries from the lists raises drops, and a push
// that was planned before plans again.
//
// The format is docs/format-remote.md, the reasons are in docs/design/depot.md.
package depot
