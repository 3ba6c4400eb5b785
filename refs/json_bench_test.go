package refs_test

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// bigSet writes a set of n references, chunks of an array in files of some
// chunks each.
func bigSet(n, chunks int, head, url string) []byte {
	b := []byte(head)
	for i := range n {
		b = append(b, `"temperature/`...)
		b = strconv.AppendInt(b, int64(i/1000), 10)
		b = append(b, '.')
		b = strconv.AppendInt(b, int64(i/10%100), 10)
		b = append(b, '.')
		b = strconv.AppendInt(b, int64(i%10), 10)
		b = append(b, `": ["`...)
		b = fmt.Appendf(b, url, i/chunks)
		b = append(b, `", `...)
		b = strconv.AppendInt(b, 4000+int64(i%100)*1_048_576, 10)
		b = append(b, `, `...)
		b = strconv.AppendInt(b, 1_000_000+int64(i*7919%48_000), 10)
		b = append(b, "], "...)
	}
	return b[:len(b)-2]
}

func BenchmarkReadJSON(b *testing.B) {
	const n = 200_000
	const url = "s3://some-bucket/era5/2020/file_%06d.nc"
	sets := map[string][]byte{
		"v0": append(bigSet(n, 100, "{", url), '}'),
		"v1": append(bigSet(n, 100, `{"version": 1, "refs": {`, url), "}}"...),
		"v1_templates": append(bigSet(n, 100, `{"version": 1, "templates": {"u": "s3://some-bucket/era5"}, "refs": {`,
			"{{u}}/2020/file_%06d.nc"), "}}"...),
		"v1_each_its_file": append(bigSet(n, 1, `{"version": 1, "refs": {`, "s3://some-bucket/era5/2020/file_%06d.nc"), "}}"...),
	}
	z, err := zstd.NewWriter(nil)
	must.Do(b, err)
	sets["v1_zstd"] = z.EncodeAll(sets["v1"], nil)
	sets["gen"] = fmt.Appendf(nil, `{"version": 1, "templates": {"u": "s3://some-bucket/era5"}, "gen": [{"key": "temperature/{{i}}.{{j}}.0",
		"url": "{{u}}/file_{{i}}.nc", "offset": "{{4000 + j * 1048576}}", "length": "1000000", "dimensions": {"i": {"stop": %d}, "j": {"stop": 100}}}]}`, n/100)
	for name, set := range sets {
		b.Run(name, func(b *testing.B) {
			got := 0
			b.ReportAllocs()
			b.SetBytes(int64(len(set)))
			for b.Loop() {
				for _, err := range refs.ReadJSON(b.Context(), kv.Bytes(set), nil) {
					must.Do(b, err)
					got++
				}
			}
			b.ReportMetric(float64(got)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
			if got%n != 0 {
				b.Errorf("%d references", got)
			}
		})
	}
}

func BenchmarkWriteJSON(b *testing.B) {
	const n = 200_000
	set := append(bigSet(n, 100, "{", "s3://some-bucket/era5/2020/file_%06d.nc"), '}')
	var entries []refs.Entry
	for e, err := range refs.ReadJSON(b.Context(), kv.Bytes(set), nil) {
		must.Do(b, err)
		entries = append(entries, e)
	}
	seq := func(yield func(refs.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
	for _, version := range []int{0, 1} {
		b.Run(fmt.Sprintf("v%d", version), func(b *testing.B) {
			var buf bytes.Buffer
			for b.Loop() {
				buf.Reset()
				must.Do(b, refs.WriteJSON(&buf, seq, &refs.WriteOptions{Version: version}))
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
			b.ReportMetric(float64(buf.Len())/n, "bytes/ref")
		})
	}
}
