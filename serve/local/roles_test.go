package local

import (
	"context"
	"fmt"
	"os"

	"github.com/zarrdb/zarrdb/serve"
)

// Some tests need a second process: this one, run again with a role.
const roleVariable = "ZARRDB_TEST_ROLE"

var roles = map[string]func(args []string) error{}

func playRole(role string) {
	if err := roles[role](os.Args[1:]); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runForTest is what commands do in tests.
func runForTest(ctx context.Context, c *serve.Command) int { return 0 }
