package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const mib = 1 << 20

func quickly(one processFacts) int64 { return one.held }

func TestWhatAFamilyHoldsIsSummedWhereverItsProcessesWent(t *testing.T) {
	t.Parallel()
	facts := []processFacts{
		{pid: 1, parent: 0, held: 1000},  // the launcher of all
		{pid: 10, parent: 1, held: 100},  // a launcher: not counted
		{pid: 20, parent: 1, held: 100},  // another one
		{pid: 11, parent: 10, held: 1},   // its server
		{pid: 12, parent: 11, held: 2},   // a child of that
		{pid: 13, parent: 10, held: 4},   // an orphan that the launcher adopted
		{pid: 21, parent: 20, held: 8},   // the server of the other one
		{pid: 30, parent: 999, held: 16}, // its parent was not seen
		{pid: 31, parent: 32, held: 32},  // read in the middle of changes: a circle
		{pid: 32, parent: 31, held: 64},
	}
	roots := []int{10, 20, 40}
	relate(facts, roots)
	held := weigh(facts, roots, quickly)
	if want := map[int]int64{10: 7, 20: 8, 40: 0}; !reflect.DeepEqual(held, want) {
		t.Errorf("got %v, want %v", held, want)
	}
}

func TestAProcessThatSharesAllMemoryWithItsParentCountsOnce(t *testing.T) {
	t.Parallel()
	shape := [2]int64{500, 50}
	for name, test := range map[string]struct {
		child processFacts
		want  int64
	}{
		"between vfork and exec": {processFacts{held: 100, shape: shape}, 100},
		"after exec":             {processFacts{held: 1, shape: [2]int64{10, 1}}, 101},
		"of the same size alone": {processFacts{held: 100, shape: [2]int64{510, 50}}, 200},
		"forked and grown":       {processFacts{held: 120, shape: shape}, 220},
	} {
		test.child.pid, test.child.parent = 12, 11
		facts := []processFacts{{pid: 11, parent: 10, held: 100, shape: shape}, test.child}
		relate(facts, []int{10})
		held := weigh(facts, []int{10}, quickly)
		if held[10] != test.want {
			t.Errorf("%s: %d, want %d", name, held[10], test.want)
		}
	}
}

func TestWhoExceedsTheLimitIsToldAndWhenToLookAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		held  map[int]int64
		over  []int
		pause time.Duration
	}{
		"nobody":                    {nil, nil, lookSeldom},
		"far from it":               {map[int]int64{1: 10 * mib}, nil, lookSeldom},
		"halfway":                   {map[int]int64{1: 10 * mib, 2: 896 * mib}, nil, 62500 * time.Microsecond},
		"near it":                   {map[int]int64{1: 1020 * mib}, nil, lookOften},
		"to the byte":               {map[int]int64{1: 1024 * mib}, nil, lookOften},
		"above, and one that isn't": {map[int]int64{3: 2000 * mib, 1: 1024*mib + 1, 2: mib}, []int{1, 3}, lookTwice},
	} {
		over, pause := judge(test.held, 1024*mib)
		if !reflect.DeepEqual(over, test.over) || pause != test.pause {
			t.Errorf("%s: %v after %s, want %v after %s", name, over, pause, test.over, test.pause)
		}
	}
	if _, pause := judge(map[int]int64{1: 0}, 1<<62); pause != lookSeldom {
		t.Errorf("a limit beyond all memory: %s", pause)
	}
}

func TestOnlyWhoExceedsTheLimitTwiceInARowIsEnded(t *testing.T) {
	t.Parallel()
	if got := confirmed([]int{1, 2, 4}, []int{2, 3, 4}); !reflect.DeepEqual(got, []int{2, 4}) {
		t.Errorf("got %v", got)
	}
	if got := confirmed([]int{1}, nil); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestALookThatCostsMuchIsFollowedByALongerRest(t *testing.T) {
	t.Parallel()
	for _, one := range []struct{ pause, cost, want time.Duration }{
		{lookSeldom, 200 * time.Microsecond, lookSeldom},
		{lookOften, 200 * time.Microsecond, lookOften},
		{lookOften, 10 * time.Millisecond, 190 * time.Millisecond},
		{lookSeldom, 10 * time.Second, restAtMost},
	} {
		if got := rest(one.pause, one.cost); got != one.want {
			t.Errorf("after %s: %s, want %s", one.cost, got, one.want)
		}
	}
}

func TestAServerWhoseProcessesShareMuchMemoryCostsLittle(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs an interpreter that forks without exec")
	}
	script := "import os,sys\nheld = b'x' * (100 << 20)\nfor _ in range(6):\n if os.fork() == 0: break\nos.write(1, b'ok\\n')\nsys.stdin.read()"
	run := keeping(t, "1", []string{python, "-c", script}, "--memory-limit", strconv.Itoa(200*mib))
	relay := run.connect()
	for range 7 {
		relay.expect("ok\n")
	}
	began := used(t, run.cmd.Process.Pid)
	time.Sleep(2 * time.Second) // what is measured is a share of time
	if share := (used(t, run.cmd.Process.Pid) - began).Seconds() / 2; share > 0.12 {
		t.Errorf("looking takes %.0f%% of a CPU", 100*share)
	}
	relay.close()
}

// used tells how much of a CPU a process has had, in steps of 10 ms.
func used(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	var ticks int64
	for _, field := range strings.Fields(rest)[11:13] { // utime and stime of proc_pid_stat(5)
		count, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += count
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func TestTheMessageNamesTheLimitAsKubernetesWritesIt(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{
		0: "0", 1000: "1000", 1024: "1Ki", 128 * mib: "128Mi", 1536 * mib: "1536Mi", 2048 * mib: "2Gi", 134742016: "131584Ki",
		128_000_000: "125000Ki", 128_000_001: "128000001",
	} {
		if got := quantity(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
	killed := exitOf(syscall.WaitStatus(syscall.SIGKILL))
	if got := overMemory(killed, 128*mib); got.Reason != reasonMemoryLimit || !strings.HasSuffix(got.Message, "limit of 128Mi") {
		t.Errorf("got %+v", got)
	}
	if left := exitOf(syscall.WaitStatus(0)); overMemory(left, mib) != left {
		t.Error("one that left by itself before it could be killed did not end for memory")
	}
}

func TestMemoryIsReadFromWhatTheKernelWrites(t *testing.T) {
	t.Parallel()
	status := "Name:\tx RssAnon: 9 kB\nState:\tR\nPPid:\t7\nVmSize:\t  99 kB\nRssAnon:\t      10 kB\nRssFile:\t 5 kB\nRssShmem:\t 2 kB\n"
	want := processFacts{pid: 8, parent: 7, held: 12 << 10, shape: [2]int64{99, 5}}
	if got := factsOf(8, 7, []byte(status)); got != want {
		t.Errorf("got %+v", got)
	}
	if got := factsOf(8, 7, []byte("Name:\tx\nState:\tZ\nPPid:\t7\n")); got.held != 0 {
		t.Errorf("a process that has ended holds %d", got.held)
	}
	for text, known := range map[string]bool{"x\nA: 1 kB": true, "A: 1 kB": false, "\nA: kB": false, "": false, "\nA:\t": false} {
		if _, got := field([]byte(text), "\nA:"); got != known {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestMemoryThatAForkedChildSharesCountsOnceWhenAllIsCountedExactly(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs an interpreter that forks without exec")
	}
	script := "import os,sys\nheld = b'x' * (64 << 20)\nif os.fork() == 0: held2 = b'y' * (1 << 20)\nprint('ok', flush=True)\nsys.stdin.read()"
	command := exec.Command(python, "-c", script)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = command.Wait() })
	census, err := newCensus()
	if err != nil {
		t.Fatal(err)
	}
	root, limit := os.Getpid(), int64(100*mib)
	eventually(t, "the child does not hold what it forked", func() bool {
		census.take()
		roots := []int{command.Process.Pid}
		relate(census.facts, roots)
		return weigh(census.facts, roots, quickly)[roots[0]] > 64*mib
	})
	eventually(t, "shared memory counts twice", func() bool {
		held := census.measure([]int{root}, limit)[root]
		return held > 64*mib && held < limit
	})
}

func TestALookMakesLittleGarbage(t *testing.T) {
	census, err := newCensus()
	if err != nil {
		t.Fatal(err)
	}
	roots := []int{os.Getpid()}
	census.measure(roots, 1<<40)
	if found := testing.AllocsPerRun(10, func() { census.measure(roots, 1<<40) }); found > 20 {
		t.Errorf("%g allocations a look", found)
	}
}

// eating starts a keeper whose processes hold what they are told to, at most 256 MiB.
func eating(t *testing.T, command []string, more ...string) *testLauncher {
	if raceEnabled {
		t.Skip("its own memory counts, some times that of the program")
	}
	return keeping(t, "2", command, append([]string{"--memory-limit", strconv.Itoa(256 * mib)}, more...)...)
}

// at connects to the process of an id.
func at(run *testLauncher, id string) *testRelay {
	run.t.Helper()
	serves(run, id)
	return (&testLauncher{t: run.t, socket: filepath.Join(controlDir(run), id+processSuffix)}).connect()
}

// killed gives the exit event of a process that may still have had the time to say "ok".
func killed(relay *testRelay) map[string]any {
	relay.t.Helper()
	if line, err := relay.reader.Peek(1); err == nil && line[0] == 'o' {
		relay.expect("ok\n")
	}
	return relay.event("exit")
}

func TestAProcessThatExceedsItsMemoryLimitIsEndedAndNoOther(t *testing.T) {
	for name, command := range map[string][]string{
		"the server itself":       fake("eat"),
		"a child of it":           sh(`"$0" fake-server eat; :`, os.Args[0]),
		"one that left its group": sh(`setsid -w "$0" fake-server eat; :`, os.Args[0]),
	} {
		t.Run(name, func(t *testing.T) {
			run := eating(t, command)
			greedy, modest := ask(run, "start", "a"), ask(run, "start", "b")
			greedy.expect("started")
			modest.expect("started")
			one, two := at(run, "a"), at(run, "b")
			two.send("100\n")
			two.expect("ok\n")
			one.send("100\n")
			one.expect("ok\n")
			one.send("200\n")
			exit := killed(one)
			if exit["reason"] != reasonMemoryLimit || !strings.Contains(exit["message"].(string), "memory limit of 256Mi") {
				t.Errorf("got %v", exit)
			}
			if told := greedy.expect("ended"); told.ExitCode != 137 {
				t.Errorf("exit code %d", told.ExitCode)
			}
			two.send("1\n")
			two.expect("ok\n")
			two.close()
			run.signal(syscall.SIGTERM)
			run.wait()
			run.nothingLeft()
		})
	}
}

func TestAProcessBelowItsLimitMayStartProgramsWithoutEnd(t *testing.T) {
	run := eating(t, fake("spawn", "300", "200"))
	relay := run.connect()
	relay.expect("ok\n")
	relay.close()
}

func TestAFirstProcessThatExceedsItsMemoryLimitSaysSoInTheTerminationMessage(t *testing.T) {
	run := eating(t, fake("eat"))
	relay := run.connect()
	relay.send("300\n")
	killed(relay)
	if code := run.wait(); code != 137 {
		t.Errorf("exit code %d", code)
	}
	if told := run.termination(); told["reason"] != reasonMemoryLimit {
		t.Errorf("got %v", told)
	}
}

func TestAMemoryLimitWithoutMoreProcessesIsRefused(t *testing.T) {
	t.Parallel()
	for text, args := range map[string][]string{
		"needs --control":      {"--memory-limit", "1"},
		"must not be negative": {"--memory-limit", "-1", "--control", "/c"},
	} {
		_, err := parseOptions(append(append([]string{"--socket", "/s"}, args...), "--", "cat"))
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
