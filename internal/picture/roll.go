package picture

import (
	"context"
	"math"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
)

// Roll moves the elements of the dimension Dim, so that the one of index By is the first, and those
// before it are the last. Nothing is moved if By is 0.
type Roll struct {
	Dim int
	By  int64
}

// RollTo is the roll that puts a longitude into the middle of a map; ok is false if no dimension of
// the array has longitudes around the globe.
func RollTo(ctx context.Context, a *zarr.Array, beside cf.Opener, centre float64) (r Roll, ok bool) {
	for d := range a.Shape() {
		if x := NewAxis(ctx, a, d, beside); x.Round() {
			return Roll{d, x.rollTo(centre)}, true
		}
	}
	return r, false
}

// Round reports whether labels are longitudes at equal distances around the whole globe.
func (x *Axis) Round() bool {
	if x.Globe != "lon" || !x.Numbers() || x.Len < 4 || x.Edges() != nil {
		return false
	}
	return math.Abs(math.Abs(x.edge(x.Len)-x.edge(0))-360) < 90/float64(x.Len)
}

// rollTo is the element that the axis begins with if a longitude is in the middle.
func (x *Axis) rollTo(centre float64) int64 {
	rise := float64(x.Labels.Order())
	at := math.Mod((centre-x.edge(0))*rise+180, 360) / 360 * float64(x.Len)
	by := int64(math.Ceil(at-0.5)) % x.Len // none where the middle is half an element off already
	return (by + x.Len) % x.Len
}

// Rolled is the axis with its elements moved. Its numbers ascend or descend as before; its texts, and
// those of ticks, are the stored ones.
func (x *Axis) Rolled(by int64) *Axis {
	if by == 0 || !x.Round() {
		return x
	}
	y := *x
	y.Labels = rolled{x.Labels, by, 360 * float64(x.Labels.Order())}
	return &y
}

type rolled struct {
	Labels
	by    int64
	round float64 // 360, or -360 of numbers that descend
}

func (l rolled) Text(i int64) string { return l.Labels.Text((i + l.by) % l.Len()) }

func (l rolled) Number(i int64) float64 {
	if i += l.by; i >= l.Len() {
		return l.Labels.Number(i-l.Len()) + l.round
	}
	return l.Labels.Number(i)
}

// stored are the numbers as they are stored.
func (l rolled) stored(values []float64) (out []float64) {
	step := (l.Labels.Number(1) - l.Labels.Number(0)) / 2
	for _, v := range values {
		if by := v - l.Labels.Number(l.Len()-1) - step; by*l.round > 0 {
			v -= l.round
		}
		out = append(out, v)
	}
	return out
}
