package main

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
)

func TestZZ(t *testing.T) {
	args := strings.Fields(os.Getenv("ZZ"))
	if code := run(context.Background(), args, nil, io.Discard, os.Stderr); code != 0 {
		t.Fatal(code)
	}
}
