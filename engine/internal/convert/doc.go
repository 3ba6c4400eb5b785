// Package convert presents and exports nodes in another format of Zarr. New metadata is
// written and, where the bytes of chunks mean the same in both formats, the chunks are
// copied under new keys:
//
//	g/zarr.json      { … }                 g/.zarray .zattrs
//	g/c/0/1          the same bytes        g/0.1
//
//	Plan   an export: all new metadata is made first, in memory, so that what has no form
//	       in the other format is refused before anything is written
//	View   the same as a view, made when it is read
package convert
