package webp

import (
	"image"
	"slices"

	"github.com/zarrdb/zarrdb/formats/raster"
)

// appendLossy appends a lossy image, which has colours as BT.601 has them for video:
// luma of 16 to 235, chroma of 16 to 240 (RFC 9649, 2.5), half as many samples of chroma
// in both directions. Without alpha each pixel is opaque.
func appendLossy(dst []byte, m *image.NYCbCrA, info raster.Info) []byte {
	cb, cr := make([]byte, info.Width), make([]byte, info.Width)
	dst = slices.Grow(dst, info.Width*info.Height*info.Channels)
	for y := range info.Height {
		cb = raster.Chroma(cb, m.Cb, m.CStride, m.SubsampleRatio, info.Width, info.Height, y)
		cr = raster.Chroma(cr, m.Cr, m.CStride, m.SubsampleRatio, info.Width, info.Height, y)
		for x, luma := range m.Y[y*m.YStride:][:info.Width] {
			r, g, b := videoToRGB(luma, cb[x], cr[x])
			dst = append(dst, r, g, b)
			switch {
			case info.Channels < 4:
			case m.A == nil:
				dst = append(dst, 255)
			default:
				dst = append(dst, m.A[y*m.AStride+x])
			}
		}
	}
	return dst
}

// videoToRGB converts with factors of BT.601, which are 255/219 for luma and
// 255/112 · (1-0.299) and so on for chroma, in units of 2^-14.
func videoToRGB(luma, cb, cr byte) (r, g, b byte) {
	const (
		half   = 1 << 13
		scale  = 19077 // 1.1644
		redCr  = 26149 // 1.5960
		greenB = 6419  // 0.3918
		greenR = 13320 // 0.8130
		blueCb = 33050 // 2.0172
	)
	y, u, v := (int(luma)-16)*scale+half, int(cb)-128, int(cr)-128
	return clip((y + v*redCr) >> 14), clip((y - u*greenB - v*greenR) >> 14), clip((y + u*blueCb) >> 14)
}

func clip(v int) byte { return byte(min(max(v, 0), 255)) }
