package raster

import "image"

// Chroma returns the samples of row y of a plane of colour that has fewer
// samples than the image, for width pixels: they are interpolated as libjpeg and
// libwebp do, with weights of 3 and 1 along a dimension that is halved, and are
// repeated where there are fewer. dst has room for width; ratio is the
// subsampling of the plane, and height is the height of the image.
//
//	samples   a       b        rows alike
//	pixels   a  ¾a+¼b ¼a+¾b
func Chroma(dst, plane []byte, stride int, ratio image.YCbCrSubsampleRatio, width, height, y int) []byte {
	h, v := factors(ratio)
	n, rows := (width+h-1)/h, (height+v-1)/v
	near := func(i int) []byte { i = min(max(i, 0), rows-1); return plane[i*stride:][:n] }
	row := near(y / v)
	dst = dst[:width]
	if h == 1 && v == 1 {
		copy(dst, row)
		return dst
	}
	if h > 2 {
		for x := range dst {
			dst[x] = row[x/h]
		}
		return dst
	}
	// The sum of a column has the weight four if rows are interpolated, else one.
	other, sum := row, func(i int) int { return int(row[i]) }
	shift := 0
	if v == 2 {
		other = near(y/2 - 1 + 2*(y%2))
		sum = func(i int) int { return 3*int(row[i]) + int(other[i]) }
		shift = 2
	}
	if h == 1 {
		for x := range dst {
			dst[x] = byte((sum(x) + 1 + y%2) >> 2)
		}
		return dst
	}
	// Rounded up and down in turn, so that there is no drift.
	even, odd := 1, 2
	if shift > 0 {
		even, odd = 8, 7
	}
	for i := range n {
		here := sum(i)
		left, right := here, here
		if i > 0 {
			left = sum(i - 1)
		}
		if i < n-1 {
			right = sum(i + 1)
		}
		dst[2*i] = byte((3*here + left + even) >> (2 + shift))
		if 2*i+1 < width {
			dst[2*i+1] = byte((3*here + right + odd) >> (2 + shift))
		}
	}
	return dst
}

// factors are the pixels of a colour sample along x and y.
func factors(ratio image.YCbCrSubsampleRatio) (h, v int) {
	switch ratio {
	case image.YCbCrSubsampleRatio422:
		return 2, 1
	case image.YCbCrSubsampleRatio420:
		return 2, 2
	case image.YCbCrSubsampleRatio440:
		return 1, 2
	case image.YCbCrSubsampleRatio411:
		return 4, 1
	case image.YCbCrSubsampleRatio410:
		return 4, 2
	}
	return 1, 1
}
