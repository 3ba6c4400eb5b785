package picture

import (
	"fmt"
	"math"
	"testing"
)

// numbers are labels at equal distances.
type numbers struct {
	from, by float64
	n        int64
}

func (l numbers) Len() int64             { return l.n }
func (l numbers) Number(i int64) float64 { return l.from + float64(i)*l.by }
func (l numbers) Text(i int64) string    { return fmt.Sprint(l.Number(i)) }
func (l numbers) Times() bool            { return false }
func (l numbers) Order() int {
	if l.by < 0 {
		return -1
	}
	return 1
}

// Coasts lie where their longitudes and latitudes do, on grids from 0, from -180 and of a region, with
// the first row in the north or in the south, and no line crosses the plane.
func TestCoast(t *testing.T) {
	axis := func(globe string, from, by float64, n int64) *Axis {
		return &Axis{Name: globe, Globe: globe, Len: n, Labels: numbers{from, by, n}}
	}
	for _, c := range []struct {
		lat, lon *Axis
		least    int // points
		agulhas  bool
	}{
		{axis("lat", 90, -1, 181), axis("lon", 0, 1, 360), 5000, true},
		{axis("lat", -89.5, 1, 180), axis("lon", -179.5, 1, 360), 5000, true},
		{axis("lat", 35, 0.25, 160), axis("lon", -10, 0.25, 200), 300, false},
		{axis("lat", -40, 0.5, 40), axis("lon", 370, 0.5, 60), 30, true}, // beyond 360
	} {
		for _, turned := range []bool{false, true} {
			lines := Coast(c.lat, c.lon)
			if turned {
				lines = Coast(c.lon, c.lat)
			}
			points, found := 0, false
			for _, l := range lines {
				for i := 0; i < len(l); i += 2 {
					points++
					x, y := l[i], l[i+1]
					if turned {
						x, y = y, x
					}
					u, v := c.lon.Labels.Number(0)+(x-0.5)*(c.lon.Labels.Number(1)-c.lon.Labels.Number(0)), c.lat.Labels.Number(0)+(y-0.5)*(c.lat.Labels.Number(1)-c.lat.Labels.Number(0))
					found = found || math.Abs(math.Mod(u+360, 360)-20) < 1 && math.Abs(v+34.8) < 0.3
					if i > 0 && math.Hypot(l[i]-l[i-2], l[i+1]-l[i-1]) > 60 {
						t.Errorf("a line from %v to %v", l[i-2:i], l[i:i+2])
					}
				}
			}
			if points < c.least || found != c.agulhas {
				t.Errorf("%+v: %d points, Cape Agulhas %v", c.lon.Labels, points, found)
			}
		}
	}
	if lines := Coast(axis("lat", 0, 1, 9), axis("", 0, 1, 9)); lines != nil {
		t.Error(lines)
	}
}
