// Package avif detects AVIF images and refuses them by name: no suitable decoder
// of AV1 is known. docs/formats.md has the reason.
package avif

import (
	"context"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/refs"
)

// Format returns the line of the table of formats.
func Format() formats.Format {
	return formats.Format{
		Scheme: "avif",
		Open: func(context.Context, formats.Base, formats.Options) (refs.Set, error) {
			return nil, formats.Unsupported("avif: images in AV1 are not decoded; convert the file to PNG or TIFF")
		},
		Detect: detect,
	}
}

// detect checks the brand of an image or of a sequence (ISO/IEC 14496-12, 4.3;
// AVIF, 6).
//
//	size 4 │ "ftyp" │ brand 4 │ version 4 │ compatible brands 4 …
func detect(e formats.Evidence) bool {
	if len(e.Head) < 16 || string(e.Head[4:8]) != "ftyp" {
		return false
	}
	brands := string(e.Head[8:12])
	return brands == "avif" || brands == "avis"
}
