// Command liar serves an empty bucket, "bucket", of a server that answers conditional writes rightly one by one, and
// lets two of several writers win that come together. It prints its URL, and ends with its standard input.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

func main() {
	backend := s3mem.New()
	if err := backend.CreateBucket(context.Background(), "bucket"); err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	log.Fatal(http.Serve(l, gofakes3.New(backend).Server()))
}
