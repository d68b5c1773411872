// Command mcp-launcher runs a stdio MCP server as the first process of a container and serves its pipes on a Unix socket.
//
// It is static and needs nothing from the image it starts in. The protocol on the socket, the exit codes and the
// termination message are described in docs/launcher.md.
package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// version of the program; the protocol has its own number, see protocolVersion.
var version = "0.1.0"

// exitLauncherFailed is the exit code when the launcher itself could not do its work (usage, socket).
const exitLauncherFailed = 125

// logFlush bounds the wait for the reader of the log at the end.
const logFlush = 300 * time.Millisecond

const usage = `usage:
  mcp-launcher run --socket PATH [flags] -- COMMAND [ARGUMENT...]   run a stdio server, serve its pipes
  mcp-launcher install DESTINATION                                  copy this program, atomically
  mcp-launcher version
`

func main() {
	// The server asks the kernel to be killed when the thread that started it ends; the main thread never does.
	runtime.LockOSThread()
	code := dispatch(os.Args[1:])
	containerLog.flush(logFlush)
	os.Exit(code)
}

func dispatch(args []string) int {
	if len(args) == 0 {
		logf("no command given\n%s", usage)
		return exitLauncherFailed
	}
	switch args[0] {
	case "run":
		return runCommand(args[1:])
	case "install":
		return installCommand(args[1:])
	case "version":
		fmt.Printf("mcp-launcher %s protocol %d\n", version, protocolVersion)
		return 0
	case "help", "-h", "--help":
		fmt.Print(usage)
		return 0
	}
	logf("unknown command %q\n%s", args[0], usage)
	return exitLauncherFailed
}
