// Package history answers questions about the graph of commits.
//
//	a ◀── b ◀── d ◀── e     Ancestors: e d b c a, children before parents
//	 ╲         ╱            MergeBase of b and c: a
//	  ◀── c ◀──             Versions.OfPath: commits that changed a path
//	                        Versions.Blame: the commit that last changed each key
//	                        Bisect: the first bad commit, with few tests
//
// It reads commits through functions and compares their content by equal pages, so
// a commit that left a path alone costs the pages on the path. It writes nothing.
package history
