package budget

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Default returns the budget of a process that sets none, in bytes: a quarter of [Memory].
func Default() int64 { return max(Memory()/4, 1) }

// Memory returns the memory that the process may take, in bytes: the least of the memory of
// the machine, the limits of its cgroups and its soft limit (GOMEMLIMIT), else 4 GiB.
func Memory() int64 {
	n := least(debug.SetMemoryLimit(-1), System())
	if n == math.MaxInt64 {
		n = 4 << 30
	}
	if math.MaxInt == math.MaxInt32 {
		n = min(n, 1<<30) // the address space of a 32-bit process
	}
	return n
}

// System returns the memory that the machine and the cgroups let the process take, in bytes,
// as of the first call; math.MaxInt64 if it is unknown.
var System = sync.OnceValue(func() int64 { return least(machine(), cgroup(os.DirFS("/"))) })

// least returns the least of the numbers that are positive, else math.MaxInt64.
func least(numbers ...int64) int64 {
	out := int64(math.MaxInt64)
	for _, n := range numbers {
		if n > 0 {
			out = min(out, n)
		}
	}
	return out
}

// cgroup returns the least memory limit of the cgroups of this process and of the cgroups around
// them, 0 if none is known. In a container, the paths of cgroups may be paths of the host: groups
// that do not exist are skipped. system is the root of the file system.
func cgroup(system fs.FS) int64 {
	groups, _ := fs.ReadFile(system, "proc/self/cgroup") // it is missing on other systems
	limit := int64(math.MaxInt64)
	for line := range strings.Lines(string(groups)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		mount, file := "sys/fs/cgroup", "memory.max"
		switch {
		case len(f) < 3 || f[1] != "" && !slices.Contains(strings.Split(f[1], ","), "memory"):
			continue
		case f[1] != "": // version 1
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for dir := path.Join("/", f[2]); ; dir = path.Dir(dir) {
			text, _ := fs.ReadFile(system, path.Join(mount, dir, file))
			n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is no limit
			limit = least(limit, n)
			if dir == "/" {
				break
			}
		}
	}
	if limit == math.MaxInt64 {
		return 0
	}
	return limit
}
