package transfer

import (
	"sync"
	"testing"
)

// Progress never goes back, even if workers report late.
func TestProgressGoesOn(t *testing.T) {
	var m Meter
	m.Keys.Store(254)
	m.reported.Store(1) // two others were faster
	m.Add(0, func(p Progress) { t.Errorf("%+v is reported after 256 keys", p) })

	m = Meter{Total: 8000}
	var last Progress // without a lock: calls do not overlap
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				m.Add(3000, func(p Progress) {
					if p.Keys < last.Keys || p.Bytes < last.Bytes || p.TotalKeys != 8000 {
						t.Errorf("%+v after %+v", p, last)
					}
					last = p
				})
			}
		})
	}
	wg.Wait()
	if last.Keys < 256 {
		t.Errorf("the last one is %+v", last)
	}
}
