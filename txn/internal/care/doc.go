// Package care keeps a database sound: it finds damage and mends it, and copies the index.
//
//	Parts       what an open database gives to care; DB is what care asks of it
//	Checker     goes through the index and the packs as of one moment, and tells what is wrong
//	Repair      restores pages, commits and payloads, and makes branches that open
//	Salvage     makes an index from the best copy there is
//	Checkpoints copies of the index, when they are due
//	Failures    the errors of background work
//	SetAside    moves what is damaged into the quarantine
//
// It knows no sessions, and nothing of who has the database open.
package care
