package budget

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

func TestCgroup(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"no cgroups", nil, 0},
		{"version 2 in a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 * mib},
		{"version 2 without a limit", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		{"version 2, the limit is that of a parent", map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "1048576\n", "sys/fs/cgroup/a/b/memory.max": "4194304\n",
		}, mib},
		{"version 2, a path outside of the namespace", map[string]string{"proc/self/cgroup": "0::/../x\n", "sys/fs/cgroup/memory.max": "1048576\n"}, mib},
		{"version 1", map[string]string{
			"proc/self/cgroup": "12:cpu,cpuacct:/a\n9:memory:/a\n0::/\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "2097152\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
		}, 2 * mib},
		{"version 1 with the path of the host", map[string]string{
			"proc/self/cgroup": "9:memory:/docker/1234\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "2097152\n",
		}, 2 * mib},
		{"damaged", map[string]string{"proc/self/cgroup": "9:memory\n::::\n\n0::/\n", "sys/fs/cgroup/memory.max": "-5"}, 0},
	} {
		system := fstest.MapFS{}
		for name, text := range test.files {
			system[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := cgroup(system); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// The default is a quarter of the soft limit, as of when a database is opened.
func TestSoftLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(64 << 20))
	m := Join(0)
	defer m.Leave()
	if n := Total(); n != 16<<20 {
		t.Errorf("%d bytes", n)
	}
}

// The least limit of the open databases counts, and the processes that share it divide it.
func TestShares(t *testing.T) {
	type cache struct{ bytes int64 }
	closed := false
	shared := Shared[*cache]{
		Part: Chunks, New: func(bytes int64) *cache { return &cache{bytes} }, Used: func(c *cache) int64 { return c.bytes },
		Resize: func(c *cache, bytes int64) { c.bytes = bytes }, Close: func(*cache) { closed = true },
	}
	a := Join(1 << 20)
	c, release := shared.Get()
	same, releaseSame := shared.Get()
	if c != same {
		t.Fatal("two caches")
	}
	check := func(what string, total int64) {
		t.Helper()
		if u := Used(); u.Limit != total || c.bytes != total/2 || u.Chunks != c.bytes || u.Used != c.bytes {
			t.Errorf("%s: %+v, %d in the cache, want %d", what, u, c.bytes, total)
		}
	}
	check("one", 1<<20)
	b := Join(2 << 20)
	check("a larger one", 1<<20)
	shares := Divide(4)
	check("with three processes", 1<<18)
	shares.Share(2)
	check("with another process", 1<<19)
	a.Leave()
	check("alone with another process", 1<<20)
	shares.Leave()
	check("alone", 2<<20)
	stop := Count(Sessions, func() int64 { return 77 })
	if u := Used(); u.Sessions != 77 || u.Used != c.bytes+77 {
		t.Errorf("%+v", u)
	}
	stop()
	release()
	release()
	check("the other user", 2<<20)
	releaseSame()
	b.Leave()
	b.Leave()
	if u := Used(); !closed || u.Used != 0 || u.Limit != Default() {
		t.Errorf("closed %v, %+v", closed, u)
	}
}

// All owners of an allowance stay within the part, also if each takes it twice.
func TestAllowances(t *testing.T) {
	for _, n := range []int{1, 2, 30} {
		sum := int64(0)
		for range n {
			defer Join(1 << 30).Leave()
			sum += Index.Allowance(1, 1, math.MaxInt64)
		}
		if 2*sum > Index.Bytes() {
			t.Errorf("%d databases take %d of %d", n, 2*sum, Index.Bytes())
		}
	}
	if n := Index.Allowance(1, 1<<20, 32<<20); n < 1<<20 || n > 32<<20 {
		t.Error(n)
	}
	if one, two := Sessions.Allowance(1, 1, math.MaxInt64), Sessions.Allowance(2, 1, math.MaxInt64); two > one/2 {
		t.Errorf("the second session gets %d, the first %d", two, one)
	}
}
