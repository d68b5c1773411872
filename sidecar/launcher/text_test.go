package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

func TestCleanTextKeepsOnlyText(t *testing.T) {
	for raw, want := range map[string]string{
		"plain\ttext\n":                    "plain\ttext\n",
		"\x1b[1;31mred\x1b[0m \x1b[2Kx":    "red x",
		"\x1b]8;;http://x\x1b\\link\x1b(B": "link",
		"10%\r20%\r\ndone":                 "10%\n20%\ndone",
		"a\x00b\x07c\u0085d":               "abcd",
		"\xff\xfe\x80 é":                   "\uFFFD é",
		"a\u202eb\u2066c\u2028d 👩\u200d💻":  "abcd 👩\u200d💻",
		"\x1b[":                            "",
	} {
		if got := cleanText([]byte(raw)); got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}

func TestCutsFallBetweenCharacters(t *testing.T) {
	for n, want := range map[int][2]string{0: {"", ""}, 1: {"a", ""}, 2: {"a", ""}, 3: {"a", "漢"}, 4: {"a漢", "漢"}, 5: {"a漢", "漢"},
		6: {"a漢", "漢漢"}, 7: {"a漢漢", "a漢漢"}, 99: {"a漢漢", "a漢漢"}} {
		if first, last := firstBytes("a漢漢", n), lastBytes("a漢漢", n); first != want[0] || last != want[1] {
			t.Errorf("%d: got %q and %q", n, first, last)
		}
	}
}

func TestMasking(t *testing.T) {
	m := newMasker([]string{"A=secret", "B=secretly", "C=aaaa", "D=abc", "PLAIN=visible", "HOME=/home/mcp",
		"KUBERNETES_SERVICE_HOST=10.0.0.1", "SPACED= padded \n", "TWO=first line\nsecond line", "NOVALUE", "EMPTY="}, []string{"PLAIN"})
	for text, want := range map[string]string{
		"nothing":                         "nothing",
		"a secret":                        "a ***",
		"secretly secretsecret":           "*** ******",
		"aaaaaa":                          "***",
		"abc visible /home/mcp 10.0.0.1":  "abc visible /home/mcp 10.0.0.1",
		"xpaddedx":                        "x***x",
		"second line, first line":         "***, ***",
		`{"k":"first line\nsecond line"}`: `{"k":"***\n***"}`,
	} {
		if got := m.mask(text, 0); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for before := range 6 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("u", before) + "secretly" + strings.Repeat("v", before)))
		if got := m.mask(text, 0); !strings.Contains(got, maskMark) {
			t.Errorf("base64 with %d characters around: %q", before, got)
		}
	}
}

func TestASecretThatGoesOnInTheNextLineIsMasked(t *testing.T) {
	secret := "hunter2-hunter2-hunter2"
	m := newMasker([]string{"TOKEN=" + secret, "SHORT=four", "KEY=" + strings.Repeat("k3y", 60)}, nil)
	for width := 1; width < len(secret); width++ {
		for _, indent := range []string{"", "    ", "\t"} {
			got := m.mask("before\n"+wrapped(secret, width, indent)+"\nafter", 0)
			if got != "before\n***\nafter" {
				t.Errorf("width %d: %q", width, got)
			}
		}
	}
	encoded := base64.StdEncoding.EncodeToString([]byte("user:" + strings.Repeat("k3y", 60) + ":more"))
	if got := m.mask(wrapped(encoded, 76, ""), 0); strings.Contains(got, "azN5") || strings.Contains(got, "M3lr") {
		t.Errorf("base64 in lines of 76: %q", got)
	}
	if got := m.mask("fo\nur\nlines", 0); got != "fo\nur\nlines" {
		t.Errorf("what is short is not looked for across line ends: %q", got)
	}
	if got := m.mask("hunter2-\n\nnext hunter2", 0); got != "hunter2-\n\nnext hunter2" {
		t.Errorf("%q", got)
	}
}

func wrapped(text string, width int, indent string) string {
	var lines []string
	for len(text) > width {
		lines, text = append(lines, text[:width]), text[width:]
	}
	return strings.Join(append(lines, text), "\n"+indent)
}

func TestSecretCutAtTheStartOfTheTailDoesNotShow(t *testing.T) {
	secret := strings.Repeat("0123456789", 30)
	m := newMasker([]string{"S=" + secret}, nil)
	for cut := range 400 {
		end := tail{limit: windowBytes + 2*m.longest()}
		end.add([]byte(strings.Repeat("-", cut) + strings.Repeat(secret, 200)))
		end.add([]byte("\nend\n"))
		if got := end.text(m); strings.Contains(got, "0123") || !strings.HasSuffix(got, "***\nend\n") {
			t.Fatalf("cut %d: %.100q", cut, got)
		}
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var all []byte
	end := tail{limit: 100}
	for i := range 1000 {
		piece := bytes.Repeat([]byte{'a' + byte(i%26)}, i%70)
		all = append(all, piece...)
		end.add(piece)
		if len(end.kept) < min(100, len(all)) || !bytes.HasSuffix(all, end.kept) {
			t.Fatalf("after %d pieces: %q", i, end.kept)
		}
	}
}

func TestTerminationMessageFitsWhateverItHolds(t *testing.T) {
	for _, tail := range []string{"", "x", strings.Repeat("\"", 2048), strings.Repeat("\u2028", 682), strings.Repeat("漢", 682), strings.Repeat("\n", 2048)} {
		document := encodeTermination(exitFacts{Reason: reasonExited, Message: strings.Repeat("\"", messageBytes), StderrTail: tail})
		var message terminationMessage
		if err := json.Unmarshal(document, &message); err != nil || len(document) > terminationBytes {
			t.Errorf("%d bytes: %v", len(document), err)
		}
		if !strings.HasSuffix(tail, message.StderrTail) || (len(document) < 3900 && message.StderrTail != tail) {
			t.Errorf("%d bytes of the tail are left, document %d", len(message.StderrTail), len(document))
		}
	}
}

func TestMaskingOfTextsThatWereCut(t *testing.T) {
	m := newMasker([]string{"TOKEN=hunter2-hunter2", "PLAIN=visible"}, []string{"PLAIN"})
	for text, want := range map[string]string{
		"":                        "",
		"visible":                 "visible",
		"a hunter2-hunter2 b":     "a *** b",
		"a hunter2-hunter2":       "a ***",
		"cut at hunter2-h…":       "cut at ***…",
		"cut after hunter2-hunt…": "cut after ***…",
		"cut at hun…":             "cut at hun…",
		"not cut hunter2":         "not cut hunter2",
		"…":                       "…",
	} {
		if got := m.maskCut(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestACharacterThatIsNotThereCompletelyIsLeftOut(t *testing.T) {
	for raw, want := range map[string]string{"": "", "a": "a", "a\xe6\xbc": "a", "漢": "漢", "a\xf0\x9f\x98": "a", "\xbc\xbc": "\xbc\xbc"} {
		if got := string(wholeRunes([]byte(raw))); got != want {
			t.Errorf("%q of %q", got, raw)
		}
	}
}
