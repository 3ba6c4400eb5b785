package picture

import (
	"image/color"
	"testing"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		t     dtype.Type
		shape []int64
		b     []byte
		want  color.Color // of the second pixel
	}{
		{dtype.NewUint(8), []int64{1, 2}, []byte{1, 200}, color.Gray{200}},
		{dtype.NewUint(16), []int64{2, 1}, []byte{1, 2, 3, 4}, color.Gray16{0x0403}},
		{dtype.NewBool(), []int64{1, 2}, []byte{0, 1}, color.Gray{255}},
		{dtype.NewUint(8), []int64{1, 2, 3}, []byte{1, 2, 3, 4, 5, 6}, color.NRGBA{4, 5, 6, 255}},
		{dtype.NewUint(8), []int64{2, 1, 4}, []byte{1, 2, 3, 4, 5, 6, 7, 8}, color.NRGBA{5, 6, 7, 8}},
	} {
		if err := Check(c.t, c.shape); err != nil {
			t.Error(err)
			continue
		}
		x, y := int(c.shape[1])-1, int(c.shape[0])-1
		if got := Of(c.t, c.shape, c.b).At(x, y); got != c.want {
			t.Errorf("%v of %v: %v, want %v", c.t, c.shape, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		t     dtype.Type
		shape []int64
	}{
		{dtype.NewUint(8), []int64{4}},
		{dtype.NewUint(8), []int64{4, 4, 2}},
		{dtype.NewUint(16), []int64{4, 4, 3}},
		{dtype.NewBool(), []int64{4, 4, 3}},
		{dtype.NewUint(32), []int64{4, 4}},
		{dtype.NewInt(8), []int64{4, 4}},
	} {
		if Check(c.t, c.shape) == nil {
			t.Errorf("%v of %v is a picture", c.t, c.shape)
		}
	}
}
