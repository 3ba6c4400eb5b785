package web

import (
	"errors"
	"net/http"

	"github.com/zarrdb/zarrdb/txn"
)

// garbageJSON is what a collection would do, in the words of "gc --json".
type garbageJSON struct {
	Pages     int64        `json:"deleted_pages"`
	PageBytes int64        `json:"deleted_page_bytes"`
	Freed     int64        `json:"freed_bytes"` // of payloads
	Held      int64        `json:"held_bytes"`  // dead, but kept for now
	Live      int64        `json:"live_bytes"`
	Holders   []holderJSON `json:"holders"`
}

// holderJSON is a branch, a tag, a session or what else keeps data.
type holderJSON struct {
	Kind     string `json:"kind"`
	Name     string `json:"name,omitempty"`
	Versions int64  `json:"versions"`
	Only     int64  `json:"only_bytes"` // that nothing else holds
}

// garbage answers what a collection would free, and what holds the rest. It reads the whole
// index, so administrators alone may ask.
//
//	/-/api/garbage?db=w
func (h *handler) garbage(w http.ResponseWriter, r *http.Request) error {
	if err := principal(r).MayAdminister("see what a collection would free"); err != nil {
		return err
	}
	db, err := h.t.Database(r.URL.Query().Get("db"))
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
	out := garbageJSON{Pages: report.DeletedPages, PageBytes: report.DeletedPageBytes, Freed: report.FreedBytes, Held: report.HeldBytes, Live: report.LiveBytes, Holders: []holderJSON{}}
	for _, holder := range report.Holders {
		out.Holders = append(out.Holders, holderJSON{holder.Kind, holder.Name, holder.Versions, holder.OnlyBytes})
	}
	return writeJSON(w, r, out)
}
