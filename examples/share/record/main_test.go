package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
)

// Each reading is a commit, and the last one has them all. Command follow reads them meanwhile; its test
// runs both.
func TestRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "weather.zdb")
	os.Args = []string{"record", dir}
	main()
	db := must.Get(zarrdb.Open(t.Context(), dir, nil))(t)
	defer db.Close()
	var messages []string
	for c, err := range db.Log(t.Context(), "main") {
		must.Do(t, err)
		messages = append(messages, c.Message)
	}
	if len(messages) != 6 || messages[0] != "reading 4" || messages[4] != "reading 0" {
		t.Errorf("commits %q", messages)
	}
	must.Do(t, db.View(t.Context(), "main~1", func(s *engine.Snapshot) error {
		a := must.Get(s.Array(t.Context(), "temp"))(t)
		temps, _, err := zarr.Read[float32](t.Context(), a, zarr.Sel())
		if want := []float32{20, 20.5, 21.5, 21, 0}; !slices.Equal(temps, want) {
			t.Errorf("%v, want %v", temps, want)
		}
		return err
	}))
}
