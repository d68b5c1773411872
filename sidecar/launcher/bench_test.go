package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// echoCount is the number of lines per measurement.
const echoCount = 100_000

const echoLine = `{"jsonrpc":"2.0","id":4294967297,"result":{"content":[{"type":"text","text":"hello"}]}}` + "\n"

// pipes is an echo server behind pipes, directly or through the launcher.
type pipes struct {
	in   io.Writer
	out  *bufio.Reader
	stop func()
}

func direct(b *testing.B) pipes {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return pipes{in, bufio.NewReaderSize(out, 64<<10), func() { _ = in.Close(); _ = cmd.Wait() }}
}

func launched(b *testing.B, binary string) pipes {
	socket := b.TempDir() + "/s"
	cmd := exec.Command(binary, "run", "--socket", socket, "--termination-log", "", "--", "cat")
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	run := &testLauncher{socket: socket, cmd: cmd}
	var relay *testRelay
	for relay == nil {
		relay = run.tryConnect()
	}
	return pipes{relay.conn, relay.reader, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }}
}

// stream sends all lines and reads all answers, both as fast as they go.
func stream(b *testing.B, p pipes) time.Duration {
	start := time.Now()
	go func() {
		out := bufio.NewWriterSize(p.in, 64<<10)
		for range echoCount {
			_, _ = out.WriteString(echoLine)
		}
		_ = out.Flush()
	}()
	for range echoCount {
		if _, err := p.out.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}

// pingPong has a number of lines under way: each answer sends the next line, one write each.
func pingPong(b *testing.B, p pipes, window int) time.Duration {
	start := time.Now()
	for range window {
		_, _ = io.WriteString(p.in, echoLine)
	}
	for i := range echoCount {
		if _, err := p.out.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
		if i < echoCount-window {
			_, _ = io.WriteString(p.in, echoLine)
		}
	}
	return time.Since(start)
}

// BenchmarkEcho prints what the launcher costs: go test -run xxx -bench Echo -benchtime 1x
func BenchmarkEcho(b *testing.B) {
	binary := b.TempDir() + "/launcher"
	build := exec.Command("go", "build", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	measures := []struct {
		name string
		run  func(*testing.B, pipes) time.Duration
	}{
		{"stream", stream},
		{"window of 16", func(b *testing.B, p pipes) time.Duration { return pingPong(b, p, 16) }},
		{"one at a time", func(b *testing.B, p pipes) time.Duration { return pingPong(b, p, 1) }},
	}
	var report strings.Builder
	for _, m := range measures {
		best := [2]time.Duration{time.Hour, time.Hour}
		for range 3 {
			for i, open := range []func() pipes{func() pipes { return direct(b) }, func() pipes { return launched(b, binary) }} {
				p := open()
				best[i] = min(best[i], m.run(b, p))
				p.stop()
			}
		}
		per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / echoCount / 1000 }
		fmt.Fprintf(&report, "%-14s direct %6.2f µs a line, launcher %6.2f µs, ratio %.2f\n", m.name, per(best[0]), per(best[1]),
			float64(best[1])/float64(best[0]))
	}
	b.Log("\n" + report.String())
}
