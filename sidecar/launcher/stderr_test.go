package main

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestStderrIsDrainedWithoutAnyNewline(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("stderr", "1048576")}.start(t)
	relay := run.connect()
	relay.send("ping\n")
	relay.expect("ping\n")
	eventually(t, "stderr does not arrive in the log", func() bool { return strings.Count(run.log.String(), "e") >= 1<<20 })
}

func TestLogThatNobodyReadsDoesNotStopTheServer(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	run := launch{command: fake("stderr", "8388608"), stderr: writer}.start(t)
	relay := run.connect()
	relay.send("ping\n")
	relay.expect("ping\n")
	watch := startWatch()
	run.signal(15)
	relay.event("terminating")
	relay.drained()
	event := relay.event("exit")
	if event["exitCode"] != 0.0 || !strings.HasPrefix(event["stderrTail"].(string), "eee") {
		t.Errorf("exit %v", event)
	}
	if code, took := run.wait(), watch.took(); code != 0 || took > 3*time.Second {
		t.Errorf("exit code %d after %v", code, took)
	}
}

func TestLogThatIsGoneDoesNotStopTheServer(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	run := launch{command: sh("echo lost >&2; echo up; read x; echo lost >&2; exit 3"), stderr: writer}.start(t)
	relay := run.connect()
	relay.expect("up\n")
	relay.send("x\n")
	if event := relay.event("exit"); event["stderrTail"] != "lost\nlost\n" {
		t.Errorf("exit %v", event)
	}
	if code := run.wait(); code != 3 {
		t.Errorf("exit code %d", code)
	}
}

func TestSecretsAreMaskedInTheTail(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-tökén/value+with?chars"
	key := "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\r\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"
	basic := base64.StdEncoding.EncodeToString([]byte("user:" + secret))
	parts := []string{
		"A " + secret[:9], secret[9:] + " B ", // over two reads
		"C\x1b[1m" + secret[:5] + "\x1b[0m" + secret[5:] + "\n",
		"D MIIEvQIBADANBgkq\n", "E hkiG9w0BAQEFAASC\n",
		"F " + base64.StdEncoding.EncodeToString([]byte(secret)) + "\n",
		"G " + base64.URLEncoding.EncodeToString([]byte(secret)) + "\n",
		"H Basic " + basic + "\n", "I plain-value\n", "J abc\n", "K /usr/bin:/bin\n",
	}
	run := launch{
		flags: []string{"--plain-env", "PLAIN,OTHER"},
		env:   []string{"TOKEN=" + secret, "KEY=" + key, "PLAIN=plain-value", "SHORT=abc", "OTHER=other-value", "PATH=/usr/bin:/bin"},
	}
	run.command = fake("write-stderr", parts...)
	launcher := run.start(t)
	if code := launcher.wait(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	tail := launcher.termination()["stderrTail"].(string)
	for _, gone := range []string{secret, secret[:9], "MIIEvQ", "hkiG9w", basic[8 : len(basic)-4],
		base64.StdEncoding.EncodeToString([]byte(secret))[:20], base64.URLEncoding.EncodeToString([]byte(secret))[:20]} {
		if strings.Contains(tail, gone) {
			t.Errorf("%q stands in the tail:\n%s", gone, tail)
		}
	}
	for _, there := range []string{"A *** B C***\n", "D ***\n", "E ***\n", "F ***\n", "G ***\n", "I plain-value\n", "J abc\n",
		"K /usr/bin:/bin\n"} {
		if !strings.Contains(tail, there) {
			t.Errorf("%q does not stand in the tail:\n%s", there, tail)
		}
	}
	if !strings.Contains(launcher.log.String(), "plain-value") {
		t.Error("stderr does not stand in the log")
	}
}

func TestTailIsBoundedValidText(t *testing.T) {
	t.Parallel()
	nasty := strings.Repeat("\"quoted\" \\ <&> \u2028 \x1b[31mred\x1b[0m \x01\x02\x07 \xff\xfe 漢字 \r\n", 500) + "\x1b]0;title\x07last \"line\"\n"
	run := launch{command: fake("write-stderr", nasty)}.start(t)
	run.wait()
	message := run.termination() // is valid JSON of at most 4096 bytes
	tail := message["stderrTail"].(string)
	if len(tail) > tailBytes || len(tail) < 1000 || !utf8.ValidString(tail) || !strings.HasSuffix(tail, "漢字 \nlast \"line\"\n") {
		t.Errorf("tail of %d bytes ends in %q", len(tail), tail[max(0, len(tail)-60):])
	}
	if strings.ContainsAny(tail, "\x1b\x01\x07\r") {
		t.Errorf("control characters in %q", tail)
	}
}

func TestTheLastLineOfStderrIsToldAsProgress(t *testing.T) {
	t.Parallel()
	run := launch{
		env:     []string{"API_KEY=sesame-open"},
		command: sh(`printf 'Resolved 3\n\033[2mDownloading 40%%\rDownloading sesame-open\r\n\n' >&2; echo one; read x; printf 'key: sesame' >&2; echo two; read x`),
	}.start(t)
	relay := run.connect()
	for _, step := range []struct{ said, want string }{{"one\n", "Downloading ***"}, {"two\n", "key: ***"}} {
		relay.expect(step.said)
		eventually(t, "no "+step.want, func() bool {
			relay.send("\x00" + `{"event":"progress"}` + "\n")
			return relay.event("progress")["line"] == step.want
		})
		relay.send("go on\n")
	}
}
