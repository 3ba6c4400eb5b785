// Package source follows URL pipelines (ZEP 8) to places, and detects their formats.
//
//	file:///data/x.zip | zip:a/ | zarr3:b
//	└──── root ──────┘   └─ adapters ───┘
//
//	Env.Open          ──▶ Place: a view, a path in it, and its kind
//	Env.Dataset       ──▶ Place of a node; formats that the URL leaves out are detected
//	Env.ReferenceSet  ──▶ Set: a reference set or a foreign format, as a view
//	Env.Resolver      ──▶ a reader of the files that references lead to
//
// An [Adapters] registry maps schemes to functions that open them; every adapter
// turns one Place into the next:
//
//	directory, server, bucket, memory      schemes.go, remote.go
//	zip, gzip, zstd, byte-range, json      schemes.go, filters.go, pointer.go
//	zarr, zarr2, zarr3                     schemes.go
//	kerchunk and foreign formats           set.go, formats.go
//	zarrdb                                 schemes.go; Env.Database opens it
//
// Detection reads the beginnings of a few files once, as [Evidence] for all adapters.
// [Follow] says where references may lead. Package engine has the databases, caches
// and workers; its Source opens nodes at a Place.
package source
