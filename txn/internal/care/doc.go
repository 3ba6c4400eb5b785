// Package care finds damage of a database, and heals payloads in their place.
//
//	Checker     goes through the index and the packs as of one moment, and tells what is wrong
//	Parts       what it needs of an open database; Heal writes right bytes in the place of damaged ones
//	SetAside    moves what is damaged into the quarantine
//
// It knows no sessions, and nothing of who has the database open.
package care
