package main

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escapes are terminal control sequences: CSI, the strings OSC, DCS, SOS, PM and APC, and the short ones.
var escapes = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]`)

// cleanText makes text of what a program printed: valid UTF-8, without terminal sequences, control characters and what
// turns the direction of writing, lines separated by a newline alone.
func cleanText(raw []byte) string {
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	text = escapes.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r': // progress bars
			return '\n'
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // also line ends, direction
			return -1
		}
		return r
	}, text)
}

// firstBytes cuts text to at most n bytes, between characters.
func firstBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:max(n, 0)]
}

// lastBytes keeps at most the last n bytes of text, from a character's start.
func lastBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	from := len(text) - max(n, 0)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}

// wholeRunes leaves out a character at the end that is not there completely.
func wholeRunes(raw []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(raw); n++ {
		if at := len(raw) - n; utf8.RuneStart(raw[at]) {
			if !utf8.FullRune(raw[at:]) {
				return raw[:at]
			}
			break
		}
	}
	return raw
}
