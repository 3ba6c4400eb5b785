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
//	   keys        a view       directory, zip, … (package source)
//	    └── chunk cache, bounded parallel I/O ──┘
//
// A [Snapshot] is one version, a [Session] a transaction. Both are kv views
// ([github.com/zarrdb/zarrdb/kv]), so raw store access, arrays, import and
// export all work on either, and on everything that a URL names.
//
//	open       Open, Create, Restore; Options
//	write      DB.Update, DB.Retry; DB.Begin, DB.Resume for a Session of any length
//	read       DB.View, DB.At
//	versions   DB.Log, DB.Branches, DB.Tags, DB.Merge, DB.Revert, DB.Rebase, DB.Reset
//	compare    DB.NodeChanges, DB.ValueChanges, DB.History, DB.Blame, DB.Bisect
//	exchange   OpenSource; DB.Import, DB.Append, Export; DB.Fetch, DB.Push, DB.Clone
//	care       DB.GC, DB.Expire, DB.Check, DB.Repair, DB.Backup, Salvage
//	errors     ErrNotFound, ErrExists, ErrConflict, ErrCorrupt, ErrLocked, ErrReadOnly, ErrClosed
//
// In a session, arrays, groups and the methods about nodes ([Session.CreateArray],
// [Session.Rename], [Session.Remove], …) keep consolidated metadata up to date. Methods about
// single keys, such as Set and [Session.SetIf], store the given bytes unchanged.
package engine
