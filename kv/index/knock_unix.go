//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package index

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// knockTime is how long a knock lasts.
const knockTime = 3 * time.Second

// knocks are the directories that this process has locked to knock, by name.
var knocks = struct {
	sync.Mutex
	dirs map[string]*os.File
}{dirs: map[string]*os.File{}}

// knock is [LockedError.Knock]. It locks the directory by flock, which needs no permission to
// write, reaches processes that share nothing but the directory, and ends with this process.
func knock(dir string) {
	knocks.Lock()
	defer knocks.Unlock()
	if knocks.dirs[dir] != nil {
		return
	}
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil { // another process knocks
		_ = f.Close()
		return
	}
	knocks.dirs[dir] = f
	time.AfterFunc(knockTime, func() { endKnock(dir, f) })
}

// endKnock ends a knock of this process, any if f is nil.
func endKnock(dir string, f *os.File) {
	knocks.Lock()
	defer knocks.Unlock()
	if now := knocks.dirs[dir]; now != nil && (f == nil || f == now) {
		delete(knocks.dirs, dir)
		_ = now.Close()
	}
}

// Knocked reports whether a process knocks; see [LockedError.Knock].
func Knocked(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
