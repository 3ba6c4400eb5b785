package web

import (
	"errors"
	"net/http"

	"github.com/zarrdb/zarrdb/txn"
)

// garbage answers with the space that a collection would free, and the holders of the rest, in the
// form of "gc --json". It reads the whole index, so administrators alone may ask.
//
//	/-/api/garbage?db=w
func (h *handler) garbage(w http.ResponseWriter, r *http.Request) error {
	if err := principal(r).MayAdminister("see what a collection would free"); err != nil {
		return err
	}
	db, err := h.t.Database(r.Context(), r.URL.Query().Get("db"))
	if err != nil {
		return err
	}
	report, err := db.GC(r.Context(), txn.GCOptions{DryRun: true, Explain: true})
	if errors.Is(err, txn.ErrCollecting) {
		return httpError{http.StatusConflict, err}
	}
	if err != nil {
		return err
	}
	holders := []map[string]any{}
	for _, holder := range report.Holders {
		holders = append(holders, map[string]any{"kind": holder.Kind, "name": holder.Name, "versions": holder.Versions, "only_bytes": holder.OnlyBytes})
	}
	return writeJSON(w, r, map[string]any{
		"deleted_pages": report.DeletedPages, "deleted_page_bytes": report.DeletedPageBytes, "freed_bytes": report.FreedBytes,
		"held_bytes": report.HeldBytes, "live_bytes": report.LiveBytes, "holders": holders,
	})
}
