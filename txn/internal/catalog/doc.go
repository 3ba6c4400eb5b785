// Package catalog encodes and decodes the records of the index, each in one place.
//
//	space     key                 record              file
//	commit    hash of the record  Commit              commit.go, cache.go
//	ref       heads/… or tags/…   CommitID            ref.go
//	reflog    ref, 0, number      RefMove             reflog.go
//	session   SessionID           Session             session.go
//	expired   CommitID            time                expired.go
//	pack      pack.ID             durable end         pack.go
//	meta      word                one value each      meta.go
//
//	refs ──▶ commit ──▶ parents …          reflog: every move of a ref
//	            └─ root ──▶ pages
//
// Each space is a [Table], which puts, deletes, reads and yields its records.
// Sequences end at the first record that cannot be decoded; check and repair decode
// one by one instead. Bytes that cannot be decoded are kv.ErrCorrupt.
// docs/format.md has the layouts.
//
// The package holds no state and takes no locks: txn decides who may write what, and
// when.
package catalog
