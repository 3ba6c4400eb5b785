//go:build unix

package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
)

// oobSize is the room for the descriptors that come with one read.
var oobSize = syscall.CmsgSpace(4 * maxWaiting)

func canSendFiles(c net.Conn) bool {
	_, ok := c.(*net.UnixConn)
	return ok
}

// receive reads bytes and the files that come with them.
func receive(c net.Conn, p, oob []byte) (int, []*os.File, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		n, err := c.Read(p)
		return n, nil, err
	}
	n, oobn, flags, _, err := u.ReadMsgUnix(p, oob)
	if errors.Is(err, io.EOF) {
		err = io.EOF // without the address in its text
	}
	if oobn == 0 {
		return n, nil, err
	}
	files, bad := rights(oob[:oobn])
	if flags&syscall.MSG_CTRUNC != 0 {
		bad = fmt.Errorf("%w: more descriptors than fit", ErrProtocol)
	}
	if err == nil {
		err = bad
	}
	return n, files, err
}

// rights returns the files in control messages.
func rights(oob []byte) ([]*os.File, error) {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrProtocol, err)
	}
	var files []*os.File
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			continue // unrequested credentials
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

// sendFiles sends at least the first byte of p, and files with it.
func sendFiles(c net.Conn, p []byte, files []Descriptor) (int, error) {
	fds := make([]int, len(files))
	for i, f := range files {
		file, ok := f.(*os.File)
		if !ok {
			fds[i] = int(f.Fd())
			continue
		}
		raw, err := file.SyscallConn() // Fd would make the file blocking
		if err == nil {
			err = raw.Control(func(fd uintptr) { fds[i] = int(fd) })
		}
		if err != nil {
			return 0, err
		}
	}
	n, _, err := c.(*net.UnixConn).WriteMsgUnix(p, syscall.UnixRights(fds...), nil)
	runtime.KeepAlive(files)
	return n, err
}
