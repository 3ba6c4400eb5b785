package engine

import (
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
)

// shardFile is a shard of a sharded precomputed volume of 1 GiB, in memory of some KiB: 512
// chunks of 64×64×64 bytes in order, and their index before or behind them. All voxels
// of a chunk are byte(number in the shard), plus the number of the shard.
type shardFile struct {
	shard int64
	head  []byte // before the chunks
	tail  []byte // behind them
}

const (
	volumeSide, volumeChunk = 1024, 64
	volumeChunkBytes        = volumeChunk * volumeChunk * volumeChunk
	volumeInShard           = 512
)

func newShardFile(shard int64, indexFirst bool) *shardFile {
	le := binary.LittleEndian
	index := make([]byte, 0, 24*volumeInShard)
	for row := range 3 {
		for i := range int64(volumeInShard) {
			v := int64(0)
			switch {
			case row == 0 && i == 0:
				v = shard * volumeInShard
			case row == 0:
				v = 1
			case row == 1 && i == 0 && indexFirst:
				v = int64(cap(index))
			case row == 2:
				v = volumeChunkBytes
			}
			index = le.AppendUint64(index, uint64(v))
		}
	}
	f := &shardFile{shard: shard}
	from := int64(volumeInShard) * volumeChunkBytes
	if indexFirst {
		from = 0
	}
	f.head = le.AppendUint64(le.AppendUint64(nil, uint64(from)), uint64(from)+uint64(len(index)))
	if f.tail = index; indexFirst {
		f.head, f.tail = append(f.head, index...), nil
	}
	return f
}

func (f *shardFile) size() int64 {
	return int64(len(f.head)+len(f.tail)) + volumeInShard*volumeChunkBytes
}

func (f *shardFile) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for ; n < len(p) && off < f.size(); off++ {
		switch at := off - int64(len(f.head)); {
		case at < 0:
			p[n] = f.head[off]
		case at < volumeInShard*volumeChunkBytes:
			p[n] = byte(at/volumeChunkBytes + f.shard)
		default:
			p[n] = f.tail[at-volumeInShard*volumeChunkBytes]
		}
		n++
	}
	return n, endOf(p[n:])
}

// A tile of 256×256 voxels of a sharded volume of 1 GiB on a server costs at most four
// requests: info, the index of the shard, that of the minishard, and the run of chunks. A
// neighbouring tile of the same shard costs a single request.
func TestShardedVolume(t *testing.T) {
	for _, indexFirst := range []bool{false, true} {
		o := newOrigin(t, map[string][]byte{"/v/info": []byte(`{"@type":"neuroglancer_multiscale_volume","type":"image","data_type":"uint8","num_channels":1,"scales":[
			{"key":"s","size":[1024,1024,1024],"resolution":[1,1,1],"voxel_offset":[0,0,0],"chunk_sizes":[[64,64,64]],"encoding":"raw","sharding":
			{"@type":"neuroglancer_uint64_sharded_v1","hash":"identity","preshift_bits":9,"minishard_bits":0,"shard_bits":3,"minishard_index_encoding":"raw","data_encoding":"raw"}}]}`)})
		o.generate(func(path string) (io.ReaderAt, int64) {
			var shard int64
			if _, err := fmt.Sscanf(path, "/v/s/%d.shard", &shard); err != nil {
				return nil, 0
			}
			f := newShardFile(shard, indexFirst)
			return f, f.size()
		})
		src := must.Get(OpenSource(bg, o.URL+"/v/|neuroglancer-precomputed:", nil))(t)
		defer src.Close()
		node := must.Get(src.Node(bg))(t)
		a, _ := node.Array()
		tile := func(x, y, z int64, most int) {
			t.Helper()
			got := make([]byte, 256*256)
			sel := zarr.Sel(zarr.Slice(x, x+256, 1), zarr.Slice(y, y+256, 1), zarr.Slice(z, z+1, 1))
			must.Do(t, a.ReadBytes(bg, sel, got))
			for i, b := range got {
				cell := [3]int64{(x + int64(i)/256) / 64, (y + int64(i)%256) / 64, z / 64}
				id := int64(0)
				for bit := range 4 {
					for d := range 3 {
						id |= cell[d] >> bit & 1 << (3*bit + d)
					}
				}
				if want := byte(id%volumeInShard + id/volumeInShard); b != want {
					t.Fatalf("voxel %d is %d, want %d", i, b, want)
				}
			}
			o.atMost(t, fmt.Sprintf("index first %v, the tile at %d, %d, %d", indexFirst, x, y, z), most)
		}
		tile(256, 0, 70, 4)
		tile(0, 256, 70, 1)
		tile(512, 512, 900, 3)
	}
}
