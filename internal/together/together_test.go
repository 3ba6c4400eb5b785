package together

import (
	"sync/atomic"
	"testing"
)

func TestGroup(t *testing.T) {
	var g Group
	var ran atomic.Int32
	for range 3 {
		g.Go(func() { ran.Add(1) })
	}
	if g.Wait(); ran.Load() != 3 {
		t.Errorf("%d of 3 ran", ran.Load())
	}
	for _, caller := range []bool{false, true} {
		got := func() (r any) {
			defer func() { r = recover() }()
			defer g.Wait()
			g.Go(func() { panic("one") })
			g.Go(func() { ran.Add(1) })
			if caller {
				panic("the caller")
			}
			return nil
		}()
		if got != "one" {
			t.Errorf("recovered %v", got)
		}
	}
	if g.Wait(); ran.Load() != 5 {
		t.Errorf("%d of 5 ran", ran.Load())
	}
}
