// Package away fetches the part of a lazy clone that is not here: pages and payloads in the bucket that the database was
// cloned from. The process that has the database open fetches them when they are read:
//
//	page      memory ─▶ index ─▶ bucket ─▶ index
//	payload   packs/ ─▶ away/ ─▶ bucket ─▶ away/
//
// Commits and refs are here. Whatever a page in the bucket names is in the bucket, too. docs/design/depot.md has the rules.
//
// The database is a [Host]. Its reads go through a [Part]:
//
//	part.go      what the files say; opening the bucket; errors
//	pages.go     pages: each is fetched once, whoever asks
//	payloads.go  payloads: those that wait are fetched together
//	row.go       payloads ahead of readers who go from front to back
//	whole.go     all payloads of a version
//	room.go      the limit of what is kept
//	verified.go  which payloads were compared with their hashes
package away
