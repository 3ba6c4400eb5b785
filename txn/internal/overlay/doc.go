// Package overlay keeps the pages that a session has made, until a commit or savepoint writes them.
//
//	session ──▶ Overlay: private pages, in memory ──beyond a bound──▶ the index, where nothing names them
//	                └── what is not in it: the pages below
//
//	commit of several sessions ──▶ Group: the overlays of all
package overlay
