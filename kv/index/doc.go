// Package index keeps the small things of a database: pages of the persistent
// map, commits, references, sessions, the table of packs. It is a sorted map
// of byte strings with atomic batches, kept in Pebble, and the only package
// that imports Pebble.
//
//	Set, Delete, PutPage      Get, View, Scan, GetPage      Ingest
//	        │                          ▲                       │
//	      Batch ──Commit(sync)──▶   Pebble  ◀── sorted tables ─┘
//	                                   │
//	                               guarded FS ──▶ disk
//
// Keys live in spaces: a space is the first byte of the stored key, so that
// each space is a range of its own. The index gives spaces no meaning, except
// that pages are in [SpacePage] under their 20-byte names.
//
// A batch is atomic. Commit(true) returns after its log record was synced;
// concurrent commits share syncs. A batch may be read before it is durable, so a
// layer that publishes a name for its writes does so after Commit.
//
// # Failure
//
// After a failed write or sync of the log or of the list of tables, the state on
// disk is unknown. The index then is failed until it is opened again: every
// later write returns [ErrFailed], reads go on, Close works. The disk is left
// exactly as it was at the failure, as after a power loss; see
// docs/design/pebble-failures.md. A full disk is noticed before a batch is
// handed to Pebble ([ErrFull]) and fails nothing.
//
// One process may have an index open. Another one gets a [LockedError] that
// names the holder. The operating system locks the file LOCK; a holder that
// opens and closes that file by itself, say to copy it, loses the lock. Use
// [Index.Checkpoint] to copy an index.
package index
