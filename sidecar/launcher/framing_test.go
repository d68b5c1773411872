package main

import (
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestLinesArriveByteForByte(t *testing.T) {
	t.Parallel()
	sent := "plain\nCRLF kept\r\n\n \n\xff\xfe not UTF-8 \x80\n{\"a\":\"é€😀漢\"}\nNUL \x00 inside\n\x00\x00{\"event\":\"forged\"}\n\x00\nlast, no newline"
	want := strings.Replace(strings.Replace(sent, "\n\x00\x00{", "\n{", 1), "\n\x00\n", "\n\n", 1) + "\n"
	file := t.TempDir() + "/lines"
	if err := os.WriteFile(file, []byte(sent), 0o600); err != nil {
		t.Fatal(err)
	}
	run := launch{command: sh("read go; cat " + file)}.start(t)
	relay := run.connect()
	relay.send("go\n")
	for _, line := range strings.SplitAfter(want, "\n")[:strings.Count(want, "\n")] {
		relay.expect(line)
	}
	relay.event("exit")
	relay.end()
}

func TestCharactersSplitOverWritesArriveWhole(t *testing.T) {
	t.Parallel()
	text := `{"text":"é€😀漢"}` + "\n"
	run := launch{command: fake("dribble", text+text)}.start(t)
	relay := run.connect()
	relay.expect(text)
	relay.expect(text)
}

func TestLineOf12MiBArrivesWhole(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("lines", "2", "12582912")}.start(t)
	relay := run.connect()
	want := bigLine(12 << 20)
	for range 2 {
		if got := relay.line(); string(got) != want {
			t.Fatalf("got %d bytes, want %d", len(got), len(want))
		}
	}
}

func TestLongLinesCostTimeInProportion(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("times mean something only in a plain build")
	}
	perMiB := func(lines, size string, mib float64) time.Duration {
		run := launch{command: fake("lines", lines, size)}.start(t)
		relay := run.connect()
		watch := startWatch()
		for range atoi(lines) {
			relay.line()
		}
		return time.Duration(float64(watch.took()) / mib)
	}
	short := perMiB("1024", "65536", 64)
	long := perMiB("8", "8388608", 64)
	t.Logf("a MiB in lines of 64 KiB: %v, in lines of 8 MiB: %v", short, long)
	if long > 10*short+10*time.Millisecond {
		t.Errorf("a MiB takes %v in long lines and %v in short ones", long, short)
	}
}

func TestOnlyTheOversizedLineIsDropped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 6000)
	run := launch{flags: []string{"--max-line-bytes", "10000"}, command: fake("echo")}.start(t)
	relay := run.connect()
	exact := strings.Repeat("x", 10000) + "\n"
	relay.send("before\n" + exact)
	relay.expect("before\n")
	relay.expect(exact)
	run = launch{flags: []string{"--max-line-bytes", "10000"},
		command: sh("read go; echo before; printf '%s,9\\n' " + long + "; echo after; printf '%s' " + long)}.start(t)
	relay = run.connect()
	relay.send("go\n")
	relay.expect("before\n")
	event := relay.event("oversized")
	head := event["head"].(string)
	if event["bytes"] != 12002.0 || utf8.RuneCountInString(head) != 4096 || !strings.HasPrefix(long, head) {
		t.Errorf("bytes %v, head of %d characters", event["bytes"], utf8.RuneCountInString(head))
	}
	if event["tail"] != strings.Repeat("é", 254)+",9" {
		t.Errorf("tail %q", event["tail"])
	}
	relay.expect("after\n")
	relay.event("oversized") // also without a newline at the end
	relay.event("exit")
}

func TestMemoryIsBoundedWithoutAnyNewline(t *testing.T) {
	t.Parallel()
	run := launch{flags: []string{"--max-line-bytes", "1048576"}, command: fake("flood", "268435456")}.start(t)
	relay := run.connect()
	if event := relay.event("oversized"); event["bytes"] != 268435456.0 {
		t.Errorf("event says %v bytes", event["bytes"])
	}
	relay.expect("ok\n")
	if peak := run.memory("VmHWM"); peak > 32<<10 && !raceEnabled {
		t.Errorf("peak memory %d KiB", peak)
	}
}

func TestMemoryOfALongLineIsGivenBack(t *testing.T) {
	t.Parallel()
	if raceEnabled {
		t.Skip("the race detector keeps memory of its own")
	}
	run := launch{command: fake("lines", "1", "12582912")}.start(t)
	run.connect().line()
	before := run.memory("VmRSS")
	eventually(t, "memory is kept", func() bool { return run.memory("VmRSS") < 12<<10 })
	t.Logf("resident: %d KiB, later %d KiB", before, run.memory("VmRSS"))
}
