package codecs_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// TestConfigurationsOfWriters has configurations that writers store and that are
// printed in another form here.
func TestConfigurationsOfWriters(t *testing.T) {
	reg := codecs.Default()
	for _, c := range []struct {
		v2, v3 string
		want   string // the configuration that is printed
	}{
		{`{"id":"zstd","level":50}`, `{"name":"zstd","configuration":{"level":50,"checksum":false}}`, `{"level":22,"checksum":false}`},
		{`{"id":"zstd","level":-200000}`, `{"name":"zstd","configuration":{"level":-200000,"checksum":false}}`, `{"level":-131072,"checksum":false}`},
		{`{"id":"pcodec","level":8,"delta_spec":"no_op"}`, `{"name":"numcodecs.pcodec","configuration":{"level":8,"delta_spec":"no_op"}}`,
			`{"level":8,"delta_spec":"none"}`},
	} {
		i4 := dtype.NewInt(32).WithOrder(dtype.Little)
		old, err := reg.ParseV2(codecs.V2{Type: i4, Order: "C", Rank: 1, Compressor: json.RawMessage(c.v2)})
		if err != nil {
			t.Errorf("%s: %v", c.v2, err)
			continue
		}
		list := `[` + c.v3 + `]`
		if !bytes.Contains([]byte(c.v3), []byte("pcodec")) {
			list = `[` + little + `,` + c.v3 + `]`
		}
		chain, err := reg.ParseV3(json.RawMessage(list))
		if err != nil {
			t.Errorf("%s: %v", list, err)
			continue
		}
		for _, chain := range []codecs.Chain{old, chain} {
			all := chain.Codecs()
			if got := all[len(all)-1].Config(); string(got) != c.want {
				t.Errorf("%s: printed as %s, want %s", c.v3, got, c.want)
			}
			b, err := chain.Bind(codecs.Rep{Type: i4, Shape: []int{4}})
			if err != nil {
				t.Errorf("%s: %v", c.v3, err)
				continue
			}
			elems := []byte{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}
			stored, err := b.Encode(nil, elems)
			if err != nil {
				t.Errorf("%s: %v", c.v3, err)
			}
			if got, err := b.Decode(nil, stored); err != nil || !bytes.Equal(got, elems) {
				t.Errorf("%s: %v, %v", c.v3, got, err)
			}
		}
	}
}
