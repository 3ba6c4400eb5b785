package zarr

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// The first accepted text of Zarr v3 had a codec "endian", now "bytes", let transpose
// name an order "C" or "F", and its writers stored 0 as the fill value of bool. A
// document is of that text if it has the codec.

// isFirstV3 reports whether a list of codecs, or one inside a shard, has "endian".
func isFirstV3(list json.RawMessage) bool {
	codecs, _ := items(list)
	return slices.ContainsFunc(codecs, func(raw json.RawMessage) bool {
		if name, ok := asString(raw); ok {
			return name == "endian"
		}
		codec, _ := members(raw)
		name, _ := asString(codec.get("name"))
		config, _ := members(codec.get("configuration"))
		return name == "endian" || isFirstV3(config.get("codecs"))
	})
}

// codecsFirstV3 returns a list of codecs in which the orders of transpose are lists.
func codecsFirstV3(list json.RawMessage, rank int) json.RawMessage {
	codecs, ok := items(list)
	if !ok {
		return list
	}
	dst := json.RawMessage{'['}
	for i, raw := range codecs {
		if i > 0 {
			dst = append(dst, ',')
		}
		codec, _ := members(raw)
		at := slices.IndexFunc(codec, func(x jsonMember) bool { return x.name == "configuration" })
		if at < 0 {
			dst = append(dst, raw...)
			continue
		}
		name, _ := asString(codec.get("name"))
		config, _ := members(codec[at].value)
		for k, x := range config {
			switch order, _ := asString(x.value); {
			case x.name == "codecs":
				config[k].value = codecsFirstV3(x.value, rank)
			case name == "transpose" && x.name == "order" && (order == "C" || order == "F"):
				config[k].value = axes(rank, order == "F")
			}
		}
		if config != nil {
			codec[at].value = joinMembers(config)
		}
		dst = append(dst, joinMembers(codec)...)
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

// fillFirstV3 returns a fill value as it is written now.
func fillFirstV3(t dtype.Type, raw json.RawMessage) json.RawMessage {
	if t.Kind() == dtype.Bool {
		switch string(raw) {
		case "0":
			return json.RawMessage("false")
		case "1":
			return json.RawMessage("true")
		}
	}
	return raw
}
