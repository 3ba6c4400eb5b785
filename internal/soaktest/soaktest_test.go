package soaktest

import (
	"testing"
	"time"
)

func TestSettings(t *testing.T) {
	t.Setenv("ZARRDB_SOAK", "3s")
	t.Setenv("ZARRDB_SEED", "17")
	if d, seed := Time(t), Seed(t); d != 3*time.Second || seed != 17 {
		t.Errorf("%v with seed %d", d, seed)
	}
	t.Setenv("ZARRDB_SEED", "")
	if a, b := Seed(t), Seed(t); a == b {
		t.Errorf("seed %d twice", a)
	}
	t.Run("without", func(t *testing.T) {
		t.Setenv("ZARRDB_SOAK", "")
		t.Cleanup(func() {
			if !t.Skipped() {
				t.Error("not skipped")
			}
		})
		Time(t)
	})
}
