package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/zarr"
)

// cog is a BigTIFF file of 1 GiB in memory of some KiB: its directory and the offsets of
// its tiles stand at the front, as in a cloud-optimised GeoTIFF. The pixels of tile i are
// byte(i), and i>>8 in its second row.
type cog struct {
	header []byte
	at     int64
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

func (c *cog) Read(p []byte) (int, error) {
	size := int64(len(c.header)) + cogSize
	if c.at >= size {
		return 0, io.EOF
	}
	n := 0
	if c.at < int64(len(c.header)) {
		n = copy(p, c.header[c.at:])
	}
	for ; n < len(p) && c.at+int64(n) < size; n++ {
		at := c.at + int64(n) - int64(len(c.header))
		tile, row := at/(cogTile*cogTile), at%(cogTile*cogTile)/cogTile
		p[n] = byte(tile)
		if row == 1 {
			p[n] = byte(tile >> 8)
		}
	}
	c.at += int64(n)
	return n, nil
}

func (c *cog) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		c.at = off
	case io.SeekCurrent:
		c.at += off
	case io.SeekEnd:
		c.at = int64(len(c.header)) + cogSize + off
	}
	if c.at < 0 {
		return 0, errors.New("before the beginning")
	}
	return c.at, nil
}

// A tile of a file of 1 GiB on a server costs one request for the header and one for
// the tile; tiles that lie together are one request, and an open file reads no header
// again.
func TestCOG(t *testing.T) {
	o := newOrigin(t, nil)
	o.before = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if r.URL.Path != "/x.tif" {
			return false
		}
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, newCOG())
		return true
	}
	src, err := OpenSource(bg, o.URL+"/x.tif|tiff:", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	node, err := src.Node(bg)
	if err != nil {
		t.Fatal(err)
	}
	a, ok := node.Array()
	if !ok {
		t.Fatal("not an array")
	}
	tile := func(y, x, across int) {
		t.Helper()
		got := make([]byte, across*cogTile*cogTile)
		sel := zarr.Sel(zarr.Slice(int64(y*cogTile), int64((y+1)*cogTile), 1), zarr.Slice(int64(x*cogTile), int64((x+across)*cogTile), 1))
		if err := a.ReadBytes(bg, sel, got); err != nil {
			t.Fatal(err)
		}
		row := across * cogTile
		for i := range across {
			n := y*cogAcross + x + i
			if !bytes.Equal(got[i*cogTile:][:cogTile], bytes.Repeat([]byte{byte(n)}, cogTile)) || got[row+i*cogTile] != byte(n>>8) {
				t.Errorf("tile %d: pixels %d, %d", n, got[i*cogTile], got[row+i*cogTile])
			}
		}
	}
	requests := func(what string, most int) {
		t.Helper()
		if got := o.requests(); len(got) > most {
			t.Errorf("%s: %d requests, want at most %d: %s", what, len(got), most, strings.Join(got, ", "))
		}
	}
	tile(70, 80, 1)
	requests("the first tile", 2)
	tile(90, 3, 1)
	requests("another tile", 1)
	tile(101, 40, 5)
	requests("five tiles in a row", 1)
}
