// Package scratch lends the codecs memory for the bytes between two stages.
//
//	stored ─▶ stage ─▶ Buffer from Get ─▶ stage ─▶ dst of the caller, with Grow
//	                      └── Put: back to the pool of its size
//
// Everything here is safe for concurrent use; a Buffer belongs to one goroutine.
package scratch
