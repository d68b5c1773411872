package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func installCommand(args []string) int {
	if len(args) != 1 {
		logf("usage: mcp-launcher install DESTINATION")
		return exitLauncherFailed
	}
	if err := install("/proc/self/exe", args[0]); err != nil {
		logf("cannot install: %v", err)
		return 1
	}
	return 0
}

// install copies source to destination by way of a temporary file and a rename: a reader sees the old file or the new
// one, and a destination that is being executed is no obstacle.
func install(source, destination string) (err error) {
	in, err := os.Open(source)
	if err != nil {
		return fmt.Errorf("open the program: %w", err)
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(destination), ".mcp-launcher-*")
	if err != nil {
		return fmt.Errorf("create a file beside %s: %w", destination, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(out.Name()))
		}
	}()
	_, err = io.Copy(out, in)
	// Chmod, because the mode given at creation is cut by the umask.
	err = errors.Join(err, out.Chmod(0o755), out.Close())
	if err != nil {
		return err
	}
	return os.Rename(out.Name(), destination)
}
