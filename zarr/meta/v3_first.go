package meta

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
)

// The first accepted text of Zarr v3 had a codec "endian", now "bytes", let transpose
// name an order "C" or "F". A document is of that text if it has the codec.

// isFirstV3 reports whether a list of codecs, or one inside a shard, has "endian".
func isFirstV3(list json.RawMessage) bool {
	codecs, _ := jsontext.Items(list)
	return slices.ContainsFunc(codecs, func(raw json.RawMessage) bool {
		if name, ok := jsontext.String(raw); ok {
			return name == "endian"
		}
		codec, _ := jsontext.Members(raw)
		name, _ := jsontext.String(codec.Get("name"))
		config, _ := jsontext.Members(codec.Get("configuration"))
		return name == "endian" || isFirstV3(config.Get("codecs"))
	})
}

// codecsFirstV3 returns a list of codecs in which the orders of transpose are lists.
func codecsFirstV3(list json.RawMessage, rank int) json.RawMessage {
	codecs, ok := jsontext.Items(list)
	if !ok {
		return list
	}
	dst := json.RawMessage{'['}
	for i, raw := range codecs {
		if i > 0 {
			dst = append(dst, ',')
		}
		codec, _ := jsontext.Members(raw)
		at := slices.IndexFunc(codec, func(x jsontext.Member) bool { return x.Name == "configuration" })
		if at < 0 {
			dst = append(dst, raw...)
			continue
		}
		name, _ := jsontext.String(codec.Get("name"))
		config, _ := jsontext.Members(codec[at].Value)
		for k, x := range config {
			switch order, _ := jsontext.String(x.Value); {
			case x.Name == "codecs":
				config[k].Value = codecsFirstV3(x.Value, rank)
			case name == "transpose" && x.Name == "order" && (order == "C" || order == "F"):
				config[k].Value = axes(rank, order == "F")
			}
		}
		if config != nil {
			codec[at].Value = jsontext.Join(config)
		}
		dst = append(dst, jsontext.Join(codec)...)
	}
	return append(dst, ']')
}

// axes prints the numbers of the dimensions, in reverse for F.
func axes(rank int, reverse bool) json.RawMessage {
	dst := json.RawMessage{'['}
	for d := range rank {
		if d > 0 {
			dst = append(dst, ',')
		}
		if reverse {
			d = rank - 1 - d
		}
		dst = strconv.AppendInt(dst, int64(d), 10)
	}
	return append(dst, ']')
}
