package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/serve/web"
	"github.com/zarrdb/zarrdb/zarr"
)

// Sizes of the workload "serving".
const (
	small, middle, large = 100, 64 << 10, 2 << 20
	smallCount           = 1000
	middleCount          = 256
	largeCount           = 32
	idleConnections      = 1000
	readers              = 4
)

// roleVariable names the environment variable that makes this program play a part in the
// workload "serving", in another process.
const roleVariable = "ZARRDB_BENCH_ROLE"

// serving measures the cost of using a database through the process that has it open:
// over the local socket beside the same work in one process, and over HTTP beside nginx
// with the same chunks as files.
func serving(ctx context.Context, b *bench) {
	dir, files := b.path("serving.zdb"), b.path("files")
	defer os.RemoveAll(dir)
	defer os.RemoveAll(files)
	planes := int64(128) // of 2 MiB chunks
	if b.quick {
		planes = 8
	}
	check(os.Mkdir(files, 0o755))
	fillServed(ctx, dir, files, planes)
	same := b.path("same.zdb")
	defer os.RemoveAll(same)
	check(os.CopyFS(same, os.DirFS(dir)))
	holder := play(ctx, "hold", dir)
	defer holder.end()
	address := holder.line()
	socketGets(ctx, b, dir)
	manyReaders(ctx, b, dir, holder, planes*large)
	socketCommits(ctx, b, same, dir)
	overHTTP(ctx, b, address, files)
	idle(ctx, b, dir, holder)
}

// fillServed makes values of three sizes, the same as files, and an array of raw
// chunks of 2 MiB.
func fillServed(ctx context.Context, dir, files string, planes int64) {
	db := must(engine.Create(ctx, dir, nil))
	defer db.Close()
	random := rand.NewChaCha8([32]byte{1})
	update(ctx, db, "values", func(s *engine.Session) {
		for _, kind := range []struct{ size, count int }{{small, smallCount}, {middle, middleCount}, {large, largeCount}} {
			value := make([]byte, kind.size)
			for i := range kind.count {
				_, _ = random.Read(value) // it never fails
				key := servedKey(kind.size, i)
				check(errors.Join(s.Set(ctx, key, value), os.WriteFile(filepath.Join(files, key), value, 0o644)))
			}
		}
		a := must(s.CreateArray(ctx, "raw", zarr.Spec{
			Shape: []int64{planes, 512, 1024}, Chunks: []int64{1, 512, 1024}, DataType: "float32",
			Codecs: json.RawMessage(`[{"name":"bytes","configuration":{"endian":"little"}}]`),
		}))
		data := make([]byte, large)
		for p := range planes {
			_, _ = random.Read(data)
			check(a.WriteBytes(ctx, zarr.Sel(zarr.Slice(p, p+1, 1)), data))
		}
	})
}

func servedKey(size, i int) string { return fmt.Sprintf("%d-%d", size, i) }

// socketGets measures values of a version through the socket. The first client that
// reads a long value waits until the holder has compared its checksum. Otherwise the best
// of many rounds counts, for machines with other work.
func socketGets(ctx context.Context, b *bench, dir string) {
	for _, kind := range []struct {
		name        string
		size, count int
	}{{"100 B", small, smallCount}, {"2 MiB in place", large, largeCount}} {
		var first, again []time.Duration // medians of rounds
		for range 20 {
			withVersion(ctx, dir, func(v *engine.Snapshot) {
				for round := range 5 {
					m := quantile(timed(kind.count, func(i int) {
						value := must(v.Locate(ctx, servedKey(kind.size, i)))
						check(value.View(ctx, kv.All(), func([]byte) error { return nil }))
					}), 0.5)
					if round == 0 {
						first = append(first, m)
					} else {
						again = append(again, m)
					}
				}
			})
		}
		b.add("serving", "local socket", "get of "+kind.name+" p50", micros(slices.Min(again)), "us")
		if kind.size == large {
			b.add("serving", "local socket", "get of "+kind.name+", first time p50", micros(first[0]), "us")
			b.add("serving", "local socket", "get of "+kind.name+", by a new client p50", micros(slices.Min(first[1:])), "us")
		}
	}
}

// withVersion calls fn with the head of main, on a connection of its own.
func withVersion(ctx context.Context, dir string, fn func(*engine.Snapshot)) {
	db := must(zarrdb.Open(ctx, dir, nil))
	defer db.Close()
	v := must(db.At(ctx, "main"))
	defer v.Close()
	fn(v)
}

// manyReaders compares several processes that each read all of an array with the
// process that has the database open. They take turns, the best of each counts.
func manyReaders(ctx context.Context, b *bench, dir string, holder *actor, size int64) {
	var clients []*actor
	for range readers {
		c := play(ctx, "read", dir)
		defer c.end()
		clients = append(clients, c)
	}
	readAll := func(of ...*actor) time.Duration {
		return took(func() {
			for _, c := range of {
				c.say("read")
			}
			for _, c := range of {
				c.line()
			}
		}) / time.Duration(len(of))
	}
	var one, each []time.Duration
	for range 8 {
		one, each = append(one, readAll(holder)), append(each, readAll(clients...))
	}
	alone, together := slices.Min(one[1:]), slices.Min(each[1:]) // the first round maps and touches memory
	b.add("serving", "raw chunks of 2 MiB", "1 reader, in the process", gbps(int(size), alone), "GB/s")
	b.add("serving", "raw chunks of 2 MiB", fmt.Sprintf("%d client processes", readers), gbps(int(size), together), "GB/s")
	b.add("serving", "raw chunks of 2 MiB", "clients beside the process", 100*alone.Seconds()/together.Seconds(), "%")
}

// socketCommits compares commits of one chunk through the socket with commits of the
// process itself, in turn, in two databases that held the same before.
func socketCommits(ctx context.Context, b *bench, own, dir string) {
	inProcess := must(zarrdb.Open(ctx, own, &zarrdb.Options{Private: true}))
	defer inProcess.Close()
	through := must(zarrdb.Open(ctx, dir, nil))
	defer through.Close()
	rounds := 30
	if b.quick {
		rounds = 2
	}
	settle()
	var medians [2][]time.Duration
	value := make([]byte, chunkBytes)
	for range rounds {
		for j, db := range []*engine.DB{inProcess, through} {
			times := timed(50, func(i int) {
				copy(value, strconv.Itoa(i))
				must(db.Update(ctx, "", "chunk", func(s *engine.Session) error { return s.Set(ctx, "chunk", value) }))
			})
			medians[j] = append(medians[j], quantile(times, 0.5))
		}
	}
	here, there := micros(slices.Min(medians[0])), micros(slices.Min(medians[1]))
	b.add("serving", "commit of 1 chunk", "in the process p50", here, "us")
	b.add("serving", "commit of 1 chunk", "local socket p50", there, "us")
	b.add("serving", "commit of 1 chunk", "more through the socket", there-here, "us")
}

// idle measures the cost of connections without requests to the holder.
func idle(ctx context.Context, b *bench, dir string, holder *actor) {
	before := holder.resident()
	if before == 0 {
		return // this system does not tell
	}
	for range idleConnections {
		defer must(local.DialDir(ctx, dir, nil)).Close()
	}
	b.add("serving", fmt.Sprintf("%d idle connections", idleConnections), "memory of the holder", mebibytes(holder.resident()-before), "MiB")
}

// actor is another process of this program, which answers each line with a line.
type actor struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func play(ctx context.Context, role, dir string) *actor {
	a := &actor{cmd: exec.CommandContext(ctx, must(os.Executable()))}
	a.cmd.Env = append(os.Environ(), roleVariable+"="+role+" "+dir)
	a.cmd.Stderr = os.Stderr
	a.out, a.in = bufio.NewReader(must(a.cmd.StdoutPipe())), must(a.cmd.StdinPipe())
	check(a.cmd.Start())
	return a
}

func (a *actor) say(line string) { must(io.WriteString(a.in, line+"\n")) }

func (a *actor) line() (line string) {
	named("another process of the benchmark", func() { line = must(a.out.ReadString('\n')) })
	return strings.TrimSuffix(line, "\n")
}

// resident is the memory of the process in bytes, 0 if the system does not tell.
func (a *actor) resident() int64 {
	a.say("memory")
	return must(strconv.ParseInt(a.line(), 10, 64))
}

func (a *actor) end() {
	_ = a.in.Close()
	_ = a.cmd.Wait() // its messages are on standard error
}

// act plays a role, if the environment names one, and reports whether it does.
func act() (bool, error) {
	role, dir, ok := strings.Cut(os.Getenv(roleVariable), " ")
	if !ok {
		return false, nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return true, attempt(func() { actAs(ctx, role, dir) })
}

func actAs(ctx context.Context, role, dir string) {
	if role == "work" {
		work(ctx)
		return
	}
	o := zarrdb.Options{Engine: engine.Options{CacheBytes: -1}}
	if role == "cache" {
		o.Engine.CacheBytes = 0
	}
	db := must(zarrdb.Open(ctx, dir, &o))
	defer func() { _ = db.Close() }()
	if role == "wait" || role == "cache" {
		for again := bufio.NewScanner(os.Stdin); ; { // a line opens the database again
			fmt.Println("open")
			if !again.Scan() {
				return
			}
			check(db.Close())
			db = must(zarrdb.Open(ctx, dir, &o))
		}
	}
	if role == "hold" {
		l := must(net.Listen("tcp", "127.0.0.1:0"))
		defer l.Close()
		table := serve.New(serve.Options{})
		check(table.AddDatabase("db", db))
		h := web.Server(web.New(table, web.Options{ReadOnly: true, Anonymous: &serve.Principal{Name: "anonymous"}}), nil)
		go func() { _ = h.Serve(web.Listener(l)) }()
		fmt.Printf("http://%s/db/v/main/\n", l.Addr())
	}
	v := must(db.At(ctx, "main"))
	defer v.Close()
	obey(ctx, v)
}

// obey runs the commands of standard input.
func obey(ctx context.Context, v *engine.Snapshot) {
	a := must(v.Array(ctx, "raw"))
	size := int64(a.Type().Size())
	for _, n := range a.Shape() {
		size *= n
	}
	var data []byte
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch lines.Text() {
		case "read":
			if data == nil {
				data = must(memory(int(size)))
			}
			check(a.ReadBytes(ctx, zarr.Sel(), data))
			fmt.Println("read")
		case "memory":
			runtime.GC()
			debug.FreeOSMemory()
			fmt.Println(resident())
		}
	}
	check(lines.Err())
}
