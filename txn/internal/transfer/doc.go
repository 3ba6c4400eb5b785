// Package transfer carries versions from one database into another: clone, push, pull, fetch,
// backup and restore. docs/design/transfer.md says in which order, and what is safe meanwhile.
//
//	plan ─▶ walk ─▶ copy packs ─▶ pages ─▶ verify ─▶ commits and refs
//	(which   (what is  (durable)  (synced)  (what the  (one synced batch at the end)
//	commits)  missing)                      copy holds)
//
// [From] and [To] say what it needs of the two databases.
package transfer
