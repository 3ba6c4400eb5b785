package main

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"os"
)

// A TIFF file of the field: rows of tiffWidth samples, in tiles of 256 KiB.
const (
	tiffWidth = 4096
	tiffTile  = 256
)

// writeTIFF writes float32 data as one page with deflated tiles.
func writeTIFF(path string, data []byte) {
	le, height := binary.LittleEndian, len(data)/(4*tiffWidth)
	file := bytes.NewBuffer([]byte{'I', 'I', 42, 0, 0, 0, 0, 0})
	var offsets, counts []byte
	tile := make([]byte, 0, 4*tiffTile*tiffTile)
	w := zlib.NewWriter(nil)
	for y := 0; y < height; y += tiffTile {
		for x := 0; x < tiffWidth; x += tiffTile {
			tile = tile[:0]
			for row := y; row < y+tiffTile; row++ {
				tile = append(tile, data[4*(row*tiffWidth+x):][:4*tiffTile]...)
			}
			start := file.Len()
			w.Reset(file)
			must(w.Write(tile))
			check(w.Close())
			offsets, counts = le.AppendUint32(offsets, uint32(start)), le.AppendUint32(counts, uint32(file.Len()-start))
		}
	}
	const short, long = 3, 4
	n := uint32(len(offsets) / 4)
	offsetsAt := uint32(file.Len())
	file.Write(offsets)
	countsAt := uint32(file.Len())
	file.Write(counts)
	le.PutUint32(file.Bytes()[4:], uint32(file.Len()))
	entries := []struct {
		tag, kind    uint16
		count, value uint32
	}{
		{256, long, 1, tiffWidth}, {257, long, 1, uint32(height)}, {258, short, 1, 32}, {259, short, 1, 8}, // deflate
		{262, short, 1, 1}, {277, short, 1, 1}, {322, long, 1, tiffTile}, {323, long, 1, tiffTile},
		{324, long, n, offsetsAt}, {325, long, n, countsAt}, {339, short, 1, 3}, // floats
	}
	ifd := le.AppendUint16(nil, uint16(len(entries)))
	for _, e := range entries {
		ifd = le.AppendUint16(le.AppendUint16(ifd, e.tag), e.kind)
		ifd = le.AppendUint32(le.AppendUint32(ifd, e.count), e.value)
	}
	file.Write(append(ifd, 0, 0, 0, 0))
	check(os.WriteFile(path, file.Bytes(), 0o666))
}
