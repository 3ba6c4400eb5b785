// Package engine is zarrdb for programs: a versioned database of Zarr arrays in
// a directory, opened with one call and embedded in your process.
//
//	db, err := engine.Open(ctx, "weather.zdb", &engine.Options{Create: true, LockWait: time.Minute})
//	_, err = db.Update(ctx, "main", "add temperature", func(s *engine.Session) error {
//		a, err := s.CreateArray(ctx, "temp", zarr.Spec{…})
//		if err != nil {
//			return err
//		}
//		return zarr.Write(ctx, a, zarr.Sel(), data)
//	})
//	snap, err := db.At(ctx, "main~3")
//
// It joins the parts that do not know each other:
//
//	             engine.DB
//	    ┌────────────┼─────────────┐
//	   txn          zarr          URL pipeline
//	versions of   arrays over   any other store:
//	   keys        a view       directory, zip, …
//	    └── chunk cache, bounded parallel I/O ──┘
//
// A [Snapshot] is one version, a [Session] a transaction. Both are kv views
// ([github.com/zarrdb/zarrdb/kv]), so raw store access, arrays, import and
// export all work on either, and on everything that a URL names.
package engine
