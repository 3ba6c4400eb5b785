// Package zurl is the syntax of URL pipelines (ZEP 8): where an array lies, as
// a root URL and adapters that lead further in. It does no I/O.
//
//	s3://bucket/outer.zip | zip:path/inner.zip | zip:data/ | zarr3:temp
//	└──── root part ────┘   └──────── adapter parts ────────────────┘
//
// [Parse] reads a pipeline and resolves its ".." adapters, [Resolve] a relative
// one beside a base, and [URL.String] prints the canonical spelling.
package zurl
