//go:build unix

package sockets

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// OwnerOf returns the user that a file belongs to. It does not follow links.
func OwnerOf(path string) (uid int, ok bool) {
	fi, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// audience returns the mode of the socket of a database, and its group: users
// may connect if the modes of the files in dir allow them to read.
func audience(dir string) (mode fs.FileMode, gid int) {
	st, perm, ok := modeOf(dir)
	if !ok {
		return 0o600, 0
	}
	gid = int(st.Gid)
	group, others := perm&0o050 == 0o050, perm&0o005 == 0o005
	for _, name := range []string{"FORMAT", "packs"} {
		_, p, ok := modeOf(filepath.Join(dir, name))
		group, others = group && ok && p&0o040 != 0, others && ok && p&0o004 != 0
	}
	for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
		st, p, ok := modeOf(up)
		through := ok && p&0o001 != 0
		others = others && through
		group = group && (through || ok && p&0o010 != 0 && int(st.Gid) == gid)
		if up == filepath.Dir(up) {
			break
		}
	}
	switch {
	case others && group:
		return 0o666, gid
	case group:
		return 0o660, gid
	}
	return 0o600, gid
}

func modeOf(path string) (*syscall.Stat_t, fs.FileMode, bool) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, 0, false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return st, fi.Mode().Perm(), ok
}
