package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// taken gives so many MiB of memory that are really there.
func taken(mib int) []byte {
	held := make([]byte, mib<<20)
	for at := 0; at < len(held); at += os.Getpagesize() {
		held[at] = 1
	}
	return held
}

// fakeServer is the main function of a server process.
func fakeServer(mode string, args []string) {
	switch mode {
	case "echo":
		echo()
	case "dribble": // TEXT: one byte at a time, then wait for the end of stdin
		for _, b := range []byte(args[0]) {
			must(os.Stdout.Write([]byte{b}))
			time.Sleep(2 * time.Millisecond)
		}
		must(io.Copy(io.Discard, os.Stdin))
	case "lines": // COUNT SIZE: lines of a size, then wait for the end of stdin
		out := bufio.NewWriterSize(os.Stdout, 64<<10)
		line := bigLine(atoi(args[1]))
		for range atoi(args[0]) {
			must(out.WriteString(line))
		}
		mustDo(out.Flush())
		must(io.Copy(io.Discard, os.Stdin))
	case "count": // FILE [PADDING]: numbered lines for ever, the last number written goes to the file
		count(args[0], atoi(args[1]))
	case "flood": // BYTES: no newline until then, "ok" on a line of its own, wait
		block := bytes.Repeat([]byte("x"), 1<<20)
		for range atoi(args[0]) >> 20 {
			must(os.Stdout.Write(block))
		}
		must(os.Stdout.WriteString("\nok\n"))
		must(io.Copy(io.Discard, os.Stdin))
	case "stderr": // BYTES to stderr without a newline, then echo
		must(os.Stderr.WriteString(strings.Repeat("e", atoi(args[0]))))
		echo()
	case "write-stderr": // PART...: one write each, 20 ms apart, exit 1
		for _, part := range args {
			must(os.Stderr.WriteString(part))
			time.Sleep(20 * time.Millisecond)
		}
		os.Exit(1)
	case "spawn": // COUNT MIB: holds memory and starts programs meanwhile, then says "ok" and waits for the end of stdin
		held := taken(atoi(args[1]))
		for range atoi(args[0]) {
			mustDo(exec.Command("true").Run())
		}
		fmt.Println("ok")
		must(io.Copy(io.Discard, os.Stdin))
		runtime.KeepAlive(held)
	case "eat": // for each line MIB: holds so much more memory, then says "ok"
		var held [][]byte
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); fmt.Println("ok") {
			held = append(held, taken(atoi(lines.Text())))
		}
		runtime.KeepAlive(held)
	case "signals": // prints the signals that it gets
		channel := make(chan os.Signal, 8)
		signal.Notify(channel, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGQUIT)
		fmt.Println("ready")
		for sig := range channel {
			fmt.Println(signalName(sig.(syscall.Signal)))
		}
	}
}

func echo() {
	must(io.Copy(os.Stdout, os.Stdin))
}

func count(file string, padding int) {
	pad := strings.Repeat("p", padding)
	for i := 1; ; i++ {
		must(fmt.Printf("%d %s\n", i, pad))
		if i%16 == 0 {
			mustDo(os.WriteFile(file, []byte(strconv.Itoa(i)), 0o600))
		}
	}
}

func bigLine(size int) string { return strings.Repeat("0123456789abcdef", size/16) + "\n" }

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	mustDo(err)
	return n
}

func must[T any](_ T, err error) { mustDo(err) }

func mustDo(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(70)
	}
}
