package engine

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/zarr"
)

// BenchmarkRead reads an array of 256 chunks of 256 KiB from a directory, and
// from a web server on the loopback device that serves it.
func BenchmarkRead(b *testing.B) {
	const side, chunk = 4096, 256
	dir := b.TempDir()
	mem := Memory(b.Name())
	a, err := zarr.Create(bg, mem, "", zarr.Spec{
		Shape: []int64{side, side}, Chunks: []int64{chunk, chunk}, DataType: "float32", Codecs: []byte(`[{"name":"bytes","configuration":{"endian":"little"}}]`),
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 4*side*side)
	for i := range data {
		data[i] = byte(i * 7)
	}
	if err := a.WriteBytes(bg, zarr.Selection{}, data); err != nil {
		b.Fatal(err)
	}
	if _, err := Export(bg, openURL(b, "memory:"+b.Name()), filepath.Join(dir, "a.zarr"), ExportOptions{}); err != nil {
		b.Fatal(err)
	}
	srv := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer srv.Close()
	for _, workers := range []int{1, 8} {
		for name, url := range map[string]string{"file": filepath.Join(dir, "a.zarr"), "http": srv.URL + "/a.zarr"} {
			b.Run(name+"/workers="+string(rune('0'+workers)), func(b *testing.B) {
				src, err := OpenSource(context.Background(), url, &SourceOptions{Workers: workers})
				if err != nil {
					b.Fatal(err)
				}
				defer src.Close()
				n, err := src.Node(bg)
				if err != nil {
					b.Fatal(err)
				}
				a, _ := n.Array()
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					if err := a.ReadBytes(bg, zarr.Selection{}, data); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
