package picture

import (
	"fmt"
	"math"
	"strings"
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
		{axis("lat", 90, -1, 181), axis("lon", 0, 1, 360).Rolled(180), 5000, true},
		{axis("lat", 90, -1, 181), axis("lon", 359.5, -1, 360).Rolled(77), 5000, true},
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

// A centre is in the middle of an axis of longitudes, whose elements move with their labels; ticks have
// the stored labels. Other axes have no centre.
func TestCentre(t *testing.T) {
	for _, c := range []struct {
		from, by float64
		n        int64
		centre   float64
		roll     int64
		ticks    string
	}{
		{0, 1, 360, 180, 0, "0° 90° 180° 270°"},
		{0, 1, 360, 0, 180, "180° 270° 0° 90°"},
		{-180, 1, 360, 0, 0, "-180° -90° 0° 90°"},
		{-179.5, 1, 360, 180, 180, "60° 120° 180° -120° -60°"},
		{-179.5, 1, 360, -100, 260, "90° 180° -90° 0°"},
		{1, 2, 180, 539, 179, "360° 90° 180° 270°"},
		{359, -1, 360, 0, 179, "180° 90° 0° 270°"},
	} {
		x := &Axis{Name: "lon", Globe: "lon", Len: c.n, Units: "degrees_east", Labels: numbers{c.from, c.by, c.n}}
		by := x.rollTo(c.centre)
		y := x.Rolled(by)
		text := ""
		for _, tick := range y.Ticks(0, y.Len, 5) {
			text += " " + tick.Text
			if i := int64(tick.At); strings.HasSuffix(tick.Text, "0°") && math.Abs(math.Mod(y.Labels.Number(i)-tick.Value, 360)) > math.Abs(c.by) {
				t.Errorf("%+v: a tick %v at %v", c, tick, y.Labels.Number(i))
			}
		}
		if middle := (y.edge(0) + y.edge(y.Len)) / 2; by != c.roll || text != " "+c.ticks || math.Abs(math.Remainder(middle-c.centre, 360)) > math.Abs(c.by) {
			t.Errorf("%+v: by %d, ticks%s, the middle is %v", c, by, text, middle)
		}
		for i := int64(1); i < y.Len; i++ {
			if (y.Labels.Number(i)-y.Labels.Number(i-1))*c.by <= 0 || y.Labels.Text(i) != x.Labels.Text((i+by)%c.n) {
				t.Errorf("%+v: %d is %v", c, i, y.Labels.Number(i))
			}
		}
	}
	for _, x := range []*Axis{{Globe: "lon", Len: 361, Labels: numbers{0, 1, 361}}, {Globe: "lat", Len: 360, Labels: numbers{0, 1, 360}}, {Globe: "lon", Len: 40, Labels: numbers{0, 1, 40}}, {Globe: "lon", Len: 4}} {
		if x.Round() || x.Rolled(7) != x {
			t.Errorf("%+v goes around the globe", x)
		}
	}
}

// A rolled window has the elements of numpy.roll, every n-th of them and of each part.
func TestReadRolled(t *testing.T) {
	a := array(t, []int64{2, 12}, []int64{2, 5}, "{}")
	for _, c := range []struct {
		by     int64
		sel    string
		width  int
		values string
	}{
		{5, "0", 12, "[5 6 7 8 9 10 11 0 1 2 3 4]"},
		{5, "1,5:9", 12, "[22 23 12 13]"},
		{5, "0,1:", 4, "[6 9 0 3]"},
		{11, ":,:2", 12, "[11 0 23 12]"},
	} {
		w, err := Read(t.Context(), a, Request{Select: selection(t, a, c.sel), Width: c.width, Roll: Roll{1, c.by}})
		if err != nil || fmt.Sprint(w.Values) != c.values {
			t.Errorf("%+v: %v %v", c, w, err)
		}
	}
}
