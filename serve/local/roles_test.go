package local

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

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
func runForTest(ctx context.Context, c *serve.Command) int {
	switch c.Args[0] {
	case "upper":
		b, err := io.ReadAll(c.Stdin)
		if err != nil {
			fmt.Fprintln(c.Stderr, err)
			return 1
		}
		fmt.Fprint(c.Stdout, strings.ToUpper(string(b)))
		fmt.Fprintf(c.Stderr, "%s %s %d", c.Dir, c.Env, len(c.Held))
		return 7
	case "wait":
		fmt.Fprintln(c.Stdout, "waiting")
		<-ctx.Done()
		fmt.Fprintln(c.Stdout, "cancelled")
		return 130
	}
	return 2
}

// lineOf reads one line.
func lineOf(r io.Reader) string {
	s, _ := bufio.NewReader(r).ReadString('\n')
	return strings.TrimSuffix(s, "\n")
}
