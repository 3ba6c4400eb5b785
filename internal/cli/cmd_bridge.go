package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/serve/local"
)

// bridgeCmd is for the Python package on Windows, where Python has no Unix sockets.
func bridgeCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "bridge DB ADDR",
		Short: "Connect a program that listens at ADDR to the process that has a database open",
		Long: `Connect a program that has no Unix sockets, such as Python on Windows, to the process
that has a database open. The program listens at ADDR, and gives 64 random bytes on
standard input, by which both sides know each other; see docs/protocol.md. The
command ends with the connection.`,
		Example: "  zarrdb bridge weather.zdb 127.0.0.1:50123",
		Hidden:  true,
		Args:    argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var tokens [2 * local.TokenSize]byte
			if _, err := io.ReadFull(cmd.InOrStdin(), tokens[:]); err != nil {
				return err
			}
			return local.Bridge(cmd.Context(), here(cmd).path(args[0]), args[1], tokens)
		},
	}
}
