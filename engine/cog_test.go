package engine

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
)

// cog is a BigTIFF file of 1 GiB in memory of some KiB: its directory and the offsets of
// its tiles stand at the front, as in a cloud-optimised GeoTIFF. The pixels of tile i are
// byte(i), and i>>8 in its second row.
type cog struct {
	header []byte
}

const (
	cogSide, cogTile = 1 << 15, 256
	cogAcross        = cogSide / cogTile
	cogSize          = cogSide * cogSide
)

func newCOG() *cog {
	le := binary.LittleEndian
	b := le.AppendUint64(append([]byte("II+\x00"), 8, 0, 0, 0), 16)
	tags := []struct {
		id, typ   uint16
		count, at uint64
	}{
		{256, 4, 1, cogSide}, {257, 4, 1, cogSide}, {258, 3, 1, 8}, {259, 3, 1, 1}, {262, 3, 1, 1}, {322, 4, 1, cogTile}, {323, 4, 1, cogTile},
		{324, 16, cogAcross * cogAcross, 0}, {325, 4, cogAcross * cogAcross, 0},
	}
	offsets := 16 + 8 + 20*len(tags) + 8
	counts := offsets + 8*cogAcross*cogAcross
	size := counts + 4*cogAcross*cogAcross
	tags[7].at, tags[8].at = uint64(offsets), uint64(counts)
	b = le.AppendUint64(b, uint64(len(tags)))
	for _, g := range tags {
		b = le.AppendUint16(le.AppendUint16(b, g.id), g.typ)
		b = le.AppendUint64(le.AppendUint64(b, g.count), g.at)
	}
	b = le.AppendUint64(b, 0)
	for i := range cogAcross * cogAcross {
		b = le.AppendUint64(b, uint64(size+i*cogTile*cogTile))
	}
	for range cogAcross * cogAcross {
		b = le.AppendUint32(b, cogTile*cogTile)
	}
	return &cog{header: b}
}

func (c *cog) size() int64 { return int64(len(c.header)) + cogSize }

func (c *cog) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	if off < int64(len(c.header)) {
		n = copy(p, c.header[off:])
	}
	for ; n < len(p) && off+int64(n) < c.size(); n++ {
		at := off + int64(n) - int64(len(c.header))
		tile, row := at/(cogTile*cogTile), at%(cogTile*cogTile)/cogTile
		p[n] = byte(tile)
		if row == 1 {
			p[n] = byte(tile >> 8)
		}
	}
	return n, endOf(p[n:])
}

// A tile of a file of 1 GiB on a server costs one request for the header and one for
// the tile; tiles that lie together are one request, and an open file reads no header
// again.
func TestCOG(t *testing.T) {
	o := newOrigin(t, nil)
	o.generate(func(path string) (io.ReaderAt, int64) {
		if path != "/x.tif" {
			return nil, 0
		}
		c := newCOG()
		return c, c.size()
	})
	src := must.Get(OpenSource(bg, o.URL+"/x.tif|tiff:", nil))(t)
	defer src.Close()
	node := must.Get(src.Node(bg))(t)
	a, ok := node.Array()
	if !ok {
		t.Fatal("not an array")
	}
	tile := func(y, x, across int) {
		t.Helper()
		got := make([]byte, across*cogTile*cogTile)
		sel := zarr.Sel(zarr.Slice(int64(y*cogTile), int64((y+1)*cogTile), 1), zarr.Slice(int64(x*cogTile), int64((x+across)*cogTile), 1))
		must.Do(t, a.ReadBytes(bg, sel, got))
		row := across * cogTile
		for i := range across {
			n := y*cogAcross + x + i
			if !bytes.Equal(got[i*cogTile:][:cogTile], bytes.Repeat([]byte{byte(n)}, cogTile)) || got[row+i*cogTile] != byte(n>>8) {
				t.Errorf("tile %d: pixels %d, %d", n, got[i*cogTile], got[row+i*cogTile])
			}
		}
	}
	tile(70, 80, 1)
	o.atMost(t, "the first tile", 2)
	tile(90, 3, 1)
	o.atMost(t, "another tile", 1)
	tile(101, 40, 5)
	o.atMost(t, "five tiles in a row", 1)
}
