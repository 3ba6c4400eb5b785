package main

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// remoteScript measures icechunk in a bucket.
//
//go:embed remote.py
var remoteScript string

// cloud is a bucket of a real server, behind a network that adds 20 ms to each request and counts.
type cloud struct {
	*bench
	network string // its URL
	program string // zarrdb
	rclone  string // "" without it
	part    string // of the workload
}

// remotes measures databases in the bucket "bucket" of a server: scripts/remote.sh --figures starts one. The network is
// a process of its own. Requests and rounds are exact, whatever else the machine does.
func remotes(ctx context.Context, b *bench) {
	server := os.Getenv("ZARRDB_S3_ENDPOINT")
	if server == "" {
		check(errors.New("there is no server: use scripts/remote.sh --figures"))
	}
	c := &cloud{bench: b, program: b.path("bin")}
	c.rclone, _ = exec.LookPath("rclone")
	buildProgram(ctx, c.program)
	net := b.path("network")
	build := exec.CommandContext(ctx, "go", "build", "-o", net, "./scripts/network")
	build.Stderr = os.Stderr
	check(build.Run())
	cmd := exec.Command(net, "-to", server, "-delay", "20ms")
	stop, url := must(cmd.StdinPipe()), must(cmd.StdoutPipe())
	check(cmd.Start())
	defer func() { _, _ = stop.Close(), cmd.Wait() }()
	c.network = strings.TrimSpace(must(bufio.NewReader(url).ReadString('\n')))
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": c.network, "AWS_ACCESS_KEY_ID": os.Getenv("ZARRDB_S3_KEY"), "AWS_SECRET_ACCESS_KEY": os.Getenv("ZARRDB_S3_SECRET"), "AWS_REGION": "us-east-1",
		"AWS_EC2_METADATA_DISABLED": "true", "HOME": b.path("home"), "XDG_CACHE_HOME": b.path("cache"),
	} {
		check(os.Setenv(name, value))
	}
	for _, p := range []struct {
		name string
		run  func(context.Context)
	}{{"push", c.push}, {"machines", c.machines}, {"whole", c.whole}, {"lazy", c.lazy}, {"history", c.history}, {"icechunk", c.icechunk}} {
		if b.asked(p.name) {
			c.part = p.name
			b.step("remote "+p.name, func() { p.run(ctx) })
		}
	}
}

// counts are what the network has counted.
type counts struct {
	Requests, Rounds int
	Sent, Received   int64
}

func (c *cloud) counts() (n counts) {
	resp := must(http.Get(c.network + "/-/counts"))
	defer resp.Body.Close()
	check(json.NewDecoder(resp.Body).Decode(&n))
	return n
}

// delay sets what the network adds to each request.
func (c *cloud) delay(d time.Duration) {
	resp := must(http.Post(fmt.Sprintf("%s/-/set?delay=%v", c.network, d), "", nil))
	_ = resp.Body.Close()
}

// sent measures an operation and its requests, of which the median counts: merges of bundles come now and then.
func (c *cloud) sent(variant, metric string, n int, before, op func(i int)) {
	var times []time.Duration
	var all []counts
	for i := range n {
		before(i)
		c.counts()
		times = append(times, took(func() { op(i) }))
		all = append(all, c.counts())
	}
	slices.Sort(times)
	slices.SortFunc(all, func(a, b counts) int { return cmp.Compare(a.Requests, b.Requests) })
	first := all[n/2]
	c.add("remote", variant, metric+" p50", millis(times[n/2]), "ms")
	c.add("remote", variant, metric+" best third", millis(times[n/6]), "ms")
	c.add("remote", variant, metric+": rounds", float64(first.Rounds), "")
	c.add("remote", variant, metric+": requests", float64(first.Requests), "")
	c.add("remote", variant, metric+": moved", float64(first.Sent+first.Received)/1e6, "MB")
}

func nothing(int) {}

func (c *cloud) url(name string) string {
	return fmt.Sprintf("s3://bucket/%s-%s-%d", c.part, name, os.Getpid())
}

var everything = txn.TransferOptions{AllBranches: true, AllTags: true}

// pushed makes a database of what fill writes, and pushes it.
func (c *cloud) pushed(ctx context.Context, name string, fill func(*engine.DB)) (db *engine.DB, r *engine.Remote, remove func()) {
	c.delay(0)
	defer c.delay(20 * time.Millisecond)
	db, end := c.create(ctx, name+".zdb")
	fill(db)
	r = must(db.Remote(ctx, c.url(name), &engine.RemoteOptions{Push: true}))
	must(r.Push(ctx, everything))
	return db, r, func() { _ = r.Close(); end() }
}

// chunks makes an array of n chunks: each thousandth has 1 KiB, the others 16 bytes, which lie in the pages.
func manyChunks(ctx context.Context, n int64) func(*engine.DB) {
	return func(db *engine.DB) {
		update(ctx, db, "fill", func(s *engine.Session) {
			must(s.CreateArray(ctx, "a", zarr.Spec{Shape: []int64{n, chunkBytes / 8}, Chunks: []int64{1, chunkBytes / 8}, DataType: "float64"}))
			for i := range n {
				value := fmt.Appendf(nil, "%016d", i)
				if i%1000 == 0 {
					value = noise(chunkBytes, uint64(i))
				}
				check(s.Set(ctx, fmt.Sprintf("a/c/%d/0", i), value))
			}
		})
	}
}

func noise(n int, seed uint64) []byte {
	var key [32]byte
	key[0], key[1], key[2], key[3] = byte(seed), byte(seed>>8), byte(seed>>16), byte(seed>>24)
	out := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(out)
	return out
}

// push measures the push of one chunk of a million, with the database and the remote open, and with a remote opened anew.
func (c *cloud) push(ctx context.Context) {
	db, r, remove := c.pushed(ctx, "million", manyChunks(ctx, c.sized(1_000_000)))
	defer remove()
	made := 0
	change := func(int) {
		made++
		update(ctx, db, "change", func(s *engine.Session) {
			check(s.Set(ctx, fmt.Sprintf("a/c/%d/0", 7919*made%10_000), noise(chunkBytes, uint64(made))))
		})
	}
	c.sent("1 of 1 M chunks", "push, remote open", 40, change, func(int) { must(r.Push(ctx, txn.TransferOptions{})) })
	c.sent("1 of 1 M chunks", "push", 20, change, func(int) {
		fresh := must(db.Remote(ctx, c.url("million"), &engine.RemoteOptions{Push: true}))
		must(fresh.Push(ctx, txn.TransferOptions{}))
		check(fresh.Close())
	})
	c.sent("1 of 1 M chunks", "commit and push, remote open", 20, nothing, func(i int) {
		change(i)
		must(r.Push(ctx, txn.TransferOptions{}))
	})
}

// machines measures the last of many that push to one branch at the same moment, and merge.
func (c *cloud) machines(ctx context.Context) {
	for _, n := range []int{16, 64} {
		_, _, remove := c.pushed(ctx, fmt.Sprint("machines", n), func(db *engine.DB) { fillChunks(ctx, db, "a", 1000) })
		url := c.url(fmt.Sprint("machines", n))
		dbs, rs := make([]*engine.DB, n), make([]*engine.Remote, n)
		c.delay(0)
		parallel(n, func(i int) {
			dir := c.path(fmt.Sprintf("machine%d.zdb", i))
			must(engine.CloneRemote(ctx, url, dir, nil, txn.TransferOptions{}))
			dbs[i] = must(engine.Open(ctx, dir, &engine.Options{CacheBytes: -1}))
			update(ctx, dbs[i], "mine", func(s *engine.Session) { check(s.Set(ctx, fmt.Sprintf("a/c/%d/0", i), noise(chunkBytes, uint64(i)))) })
			rs[i] = must(dbs[i].Remote(ctx, url, &engine.RemoteOptions{Push: true}))
		})
		c.delay(20 * time.Millisecond)
		c.counts()
		last := took(func() { parallel(n, func(i int) { must(rs[i].PushMerging(ctx, txn.TransferOptions{})) }) })
		got, most := c.counts(), 0
		for i, db := range dbs {
			merges := 0
			for id := must(db.Head(ctx, "main")); ; merges++ { // each merge has the own version first
				if v := must(db.Versions().Lookup(ctx, id)); len(v.Parents) == 2 {
					id = v.Parents[0]
					continue
				}
				break
			}
			most = max(most, merges+1)
			check(errors.Join(rs[i].Close(), db.Close(), os.RemoveAll(db.Dir())))
		}
		variant := fmt.Sprintf("%d machines, one branch", n)
		c.add("remote", variant, "the last, merged", last.Seconds(), "s")
		c.add("remote", variant, "most merges and pushes of one", float64(most), "")
		c.add("remote", variant, "requests", float64(got.Requests), "")
		remove()
	}
}

// sized is n, or less of it in a quick run.
func (c *cloud) sized(n int64) int64 {
	if c.quick {
		return n / 20
	}
	return n
}

// run runs a program, and returns how long that takes, and the memory in MiB that it has at most, without files.
func (c *cloud) run(ctx context.Context, name string, args ...string) (d time.Duration, mib float64) {
	cmd := exec.CommandContext(ctx, name, args...)
	var said strings.Builder
	cmd.Stderr = &said // what it prints goes to no pipe
	d = took(func() {
		check(cmd.Start())
		ended := make(chan error)
		go func() { ended <- cmd.Wait() }()
		for {
			select {
			case err := <-ended:
				if err != nil {
					check(fmt.Errorf("%s %s: %w: %s", filepath.Base(name), args[0], err, said.String()))
				}
				return
			case <-time.After(50 * time.Millisecond):
				mib = max(mib, mebibytes(private(cmd.Process.Pid)))
			}
		}
	})
	return d, mib
}

// parallelism is how many requests for payloads zarrdb has under way, and rclone too.
const parallelism = "8"

// copies runs rclone copy.
func (c *cloud) copies(ctx context.Context, from, to string) (time.Duration, float64) {
	return c.run(ctx, c.rclone, "copy", "--config", "/dev/null", "--s3-provider", "Other", "--s3-env-auth", "--s3-endpoint", c.network, "--s3-region", "us-east-1", "--s3-no-check-bucket", "--s3-force-path-style",
		"--transfers", "1", "--s3-upload-concurrency", parallelism, "--s3-chunk-size", "64Mi", "--multi-thread-streams", parallelism, "--multi-thread-cutoff", "64Mi", from, to)
}

// whole measures pushes, clones and reads of 2 MiB chunks beside copies of the same packs.
func (c *cloud) whole(ctx context.Context) {
	const chunk = 2 << 20
	n := c.sized(int64(2 * c.planes))
	size, variant := int(n*chunk), fmt.Sprintf("%d MiB in 2 MiB chunks", 2*n)
	db, remove := c.create(ctx, "whole.zdb")
	defer remove()
	for i := int64(0); i < n; i += 128 {
		update(ctx, db, "fill", func(s *engine.Session) {
			if i == 0 {
				must(s.CreateArray(ctx, "a", zarr.Spec{Shape: []int64{n, chunk}, Chunks: []int64{1, chunk}, DataType: "uint8", Codecs: json.RawMessage(`[{"name":"bytes"}]`)}))
			}
			for k := i; k < min(i+128, n); k++ {
				check(s.Set(ctx, fmt.Sprintf("a/c/%d/0", k), noise(chunk, uint64(k))))
			}
		})
	}
	dir, packs := db.Dir(), filepath.Join(db.Dir(), "packs")
	check(db.Close())
	add := func(metric, system string, d time.Duration, mib float64) {
		c.sample("remote", variant, metric, "GB/s", system, gbps(size, d))
		fmt.Printf("%-30s %-10s %8.3f GB/s %6.0f MiB\n", metric, system, gbps(size, d), mib)
		if mib > 0 {
			c.sample("remote", variant, metric+", memory", "MiB", system, mib)
		}
	}
	both := func(metric string, round int, ours, theirs func() (time.Duration, float64)) {
		turns := []func(){func() { d, m := ours(); add(metric, inProcess, d, m) }, func() {
			if c.rclone != "" {
				d, m := theirs()
				add(metric, "rclone", d, m)
			}
		}}
		turns[round%2]()
		turns[1-round%2]()
	}
	for i := range c.rounds {
		url, copied := c.url(fmt.Sprint(i)), fmt.Sprintf(":s3:bucket/rclone-%d", i)
		both("push", i, func() (time.Duration, float64) { return c.run(ctx, c.program, "push", dir, url) },
			func() (time.Duration, float64) { return c.copies(ctx, packs, copied) })
		to := c.path("copy")
		both("clone", i, func() (time.Duration, float64) {
			defer os.RemoveAll(to)
			return c.run(ctx, c.program, "clone", url, to)
		}, func() (time.Duration, float64) { defer os.RemoveAll(to); return c.copies(ctx, copied, to) })
		lazy := c.path("lazy.zdb")
		must(engine.CloneRemote(ctx, url, lazy, nil, txn.TransferOptions{Lazy: true, AwaySize: 1 << 40}))
		read := func(dir string) (times []time.Duration) { // the first one compares what is read with its hashes
			db := must(engine.Open(ctx, dir, &engine.Options{CacheBytes: -1}))
			defer db.Close()
			view(ctx, db, func(s *engine.Snapshot) {
				a, dst := must(s.Array(ctx, "a")), make([]byte, 64<<20)
				times = timed(3, func(int) {
					for k := int64(0); k < n; k += 32 {
						check(a.ReadBytes(ctx, zarr.Sel(zarr.Slice(k, min(k+32, n), 1)), dst[:min(32, n-k)*chunk]))
					}
				})
			})
			return times
		}
		var warm []time.Duration
		both("cold lazy read", i, func() (time.Duration, float64) { t := read(lazy); warm = t[1:]; return t[0], 0 },
			func() (time.Duration, float64) { defer os.RemoveAll(to); return c.copies(ctx, copied, to) })
		for k, full := range read(dir)[1:] {
			add("warm read, lazy clone", inProcess, warm[k], 0)
			add("warm read, full database", inProcess, full, 0)
		}
		check(os.RemoveAll(lazy))
		if root := os.Getenv("ZARRDB_S3_ROOT"); root != "" { // the disk is small
			check(os.RemoveAll(filepath.Join(root, strings.TrimPrefix(url, "s3://"))))
			check(os.RemoveAll(filepath.Join(root, strings.TrimPrefix(copied, ":s3:"))))
		}
	}
}

// lazy measures lazy clones of ten million chunks, and their first chunk.
func (c *cloud) lazy(ctx context.Context) {
	n := c.sized(10_000_000)
	_, _, remove := c.pushed(ctx, "lazy", manyChunks(ctx, n))
	defer remove()
	dir := c.path("away.zdb")
	cold := func(int) { check(errors.Join(os.RemoveAll(dir), os.RemoveAll(c.path("cache")))) }
	clone := func(int) { c.run(ctx, c.program, "clone", c.url("lazy"), dir, "--lazy") }
	key := func(i int) string { return fmt.Sprintf("a/c/%d/0", n/10*int64(i)) }
	// In a process of its own: this one has the pages.
	c.sent(variantOf(n), "lazy clone", 5, cold, clone)
	c.sent(variantOf(n), "first chunk, cold", 9, func(i int) { cold(i); clone(i) }, func(i int) { c.run(ctx, c.program, "get", dir, key(i)) })
	c.sent(variantOf(n), "another chunk", 9, nothing, func(i int) { c.run(ctx, c.program, "get", dir, key(i)) })
	c.sent(variantOf(n), "first use of the URL, one chunk", 5, cold, func(i int) { c.run(ctx, c.program, "get", c.url("lazy"), key(i)) })
	c.sent(variantOf(n), "the program alone", 9, nothing, func(int) { c.run(ctx, c.program, "version") })
}

// history measures first uses of a remote with ten thousand arrays and as many pushes.
func (c *cloud) history(ctx context.Context) {
	n := int(c.sized(10_000))
	db, r, remove := c.pushed(ctx, "history", func(db *engine.DB) { tenThousand(ctx, db, n) })
	defer remove()
	c.delay(0)
	for i := range n {
		update(ctx, db, "push", func(s *engine.Session) {
			check(s.Set(ctx, fmt.Sprintf("g/a%05d/c/0", i*7919%n), noise(chunkBytes, uint64(i))))
		})
		must(r.Push(ctx, txn.TransferOptions{}))
	}
	c.delay(20 * time.Millisecond)
	variant := fmt.Sprintf("%d arrays, %d pushes", n, n)
	cold := func(int) { check(os.RemoveAll(c.path("cache"))) }
	for _, command := range []string{"tree", "log"} {
		c.sent(variant, "cold "+command, 5, cold, func(int) { c.run(ctx, c.program, command, c.url("history")) })
	}
}

func tenThousand(ctx context.Context, db *engine.DB, n int) {
	update(ctx, db, "fill", func(s *engine.Session) {
		for i := range n {
			must(s.CreateArray(ctx, fmt.Sprintf("g/a%05d", i), zarr.Spec{Shape: []int64{4, 128}, Chunks: []int64{1, 128}, DataType: "float64"}))
		}
	})
}

// icechunk measures icechunk beside zarrdb on the same server.
func (c *cloud) icechunk(ctx context.Context) {
	n, arrays, chunks := c.sized(1_000_000), int(c.sized(10_000)), c.sized(256)
	db, r, remove := c.pushed(ctx, "million", manyChunks(ctx, n))
	defer remove()
	const chunk = 2 << 20
	update(ctx, db, "values", func(s *engine.Session) {
		must(s.CreateArray(ctx, "b", zarr.Spec{Shape: []int64{chunks, chunk}, Chunks: []int64{1, chunk}, DataType: "uint8", Codecs: json.RawMessage(`[{"name":"bytes"}]`)}))
		for k := range chunks {
			check(s.Set(ctx, fmt.Sprintf("b/c/%d/0", k), noise(chunk, uint64(k))))
		}
	})
	must(r.Push(ctx, txn.TransferOptions{}))
	_, _, removeTree := c.pushed(ctx, "tree", func(db *engine.DB) { tenThousand(ctx, db, arrays) })
	defer removeTree()
	add := func(metric string, d time.Duration) {
		c.sample("remote", "beside icechunk", metric, "ms", inProcess, millis(d))
		fmt.Printf("%-30s %8.1f ms\n", metric, millis(d))
	}
	// In a process of its own, which counts, with a cache of its own.
	fresh := func(args ...string) time.Duration {
		check(os.RemoveAll(c.path("cache")))
		d, _ := c.run(ctx, c.program, args...)
		return d
	}
	for i := range c.rounds {
		for k := range 5 {
			add("commit of 1 of 1 M chunks", took(func() {
				update(ctx, db, "change", func(s *engine.Session) {
					check(s.Set(ctx, fmt.Sprintf("a/c/%d/0", 1000*i+k), noise(chunkBytes, uint64(100*i+k))))
				})
				must(r.Push(ctx, txn.TransferOptions{}))
			}))
		}
		add("open, first chunk", fresh("get", c.url("million"), "a/c/5000/0"))
		add("read all, 2 MiB chunks", fresh("read", c.url("million")+":b", "-o", "-"))
		add("list 10,000 arrays", fresh("ls", c.url("tree")+":g"))
		c.beside(ctx, remoteScript, "icechunk", map[string]any{"endpoint": c.network, "n": n, "arrays": arrays, "chunks": chunks, "pid": os.Getpid(), "round": i})
	}
}
