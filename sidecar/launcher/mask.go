package main

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maskMark = "***"
	// minSecretCharacters is the shortest value that is taken for a secret.
	minSecretCharacters = 4
	// minEncodedBytes is the shortest base64 fragment that is looked for.
	minEncodedBytes = 6
	// minSplitBytes is the shortest value that is looked for across line ends: what is shorter meets there by chance.
	minSplitBytes = 8
)

// neverSecret are variables that systems set themselves.
var neverSecret = strings.Fields("PATH HOME HOSTNAME PWD OLDPWD SHLVL SHELL TERM USER LOGNAME LANG LANGUAGE LC_ALL TZ TMPDIR")

// masker hides secret values in text.
type masker struct {
	secrets []string // longest first
}

// newMasker takes an environment ("NAME=value") and the names in it that are not secret.
func newMasker(environment, plain []string) *masker {
	var secrets []string
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if slices.Contains(plain, name) || slices.Contains(neverSecret, name) || strings.HasPrefix(name, "KUBERNETES_") {
			continue
		}
		secrets = append(secrets, forms(value)...)
	}
	slices.SortFunc(secrets, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return &masker{slices.Compact(secrets)}
}

// forms gives the texts in which a value may show up: itself, its lines, and base64 of each.
func forms(value string) []string {
	whole := strings.TrimSpace(value)
	parts := []string{value, whole}
	if strings.ContainsAny(whole, "\r\n") {
		for _, line := range strings.FieldsFunc(whole, func(r rune) bool { return r == '\n' || r == '\r' }) {
			parts = append(parts, strings.TrimSpace(line))
		}
	}
	var found []string
	for _, part := range parts {
		if utf8.RuneCountInString(part) < minSecretCharacters {
			continue
		}
		found = append(found, cleanText([]byte(part)))
		found = append(found, encodedForms(part)...)
	}
	return slices.DeleteFunc(found, func(form string) bool { return form == "" })
}

// encodedForms gives the base64 texts of a value, also those inside the base64 of a longer text, such as "user:value":
// there the first and the last character may depend on the neighbours and are left out.
func encodedForms(value string) []string {
	var found []string
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		found = append(found, encoding.EncodeToString([]byte(value)),
			encoding.WithPadding(base64.StdPadding).EncodeToString([]byte(value)))
		for before := range 3 {
			text := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
			whole := (before + len(value)) / 3 * 4 // what later bytes cannot change
			text = text[(before*8+5)/6 : whole]
			if len(text) >= minEncodedBytes {
				found = append(found, text)
			}
		}
	}
	return found
}

// longest is the length of the longest secret in bytes.
func (m *masker) longest() int {
	if len(m.secrets) == 0 {
		return 0
	}
	return len(m.secrets[0])
}

// mask replaces secrets in text. With skip > 0 the text is what is left of a longer one: its first bytes may be the end
// of a secret, so that many are left out.
func (m *masker) mask(text string, skip int) string {
	hidden := m.find(text)
	var out strings.Builder
	at := min(skip, len(text))
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	for _, span := range hidden {
		if span.end <= at {
			continue
		}
		if span.start > at {
			out.WriteString(text[at:span.start])
		}
		out.WriteString(maskMark)
		at = span.end
	}
	out.WriteString(text[at:])
	return out.String()
}

// maskCut masks a text; one that ends in an ellipsis may have been cut in the middle of a secret, by somebody who did not
// know where secrets are.
func (m *masker) maskCut(text string) string {
	whole, ellipsis := strings.CutSuffix(text, "…")
	masked := m.mask(whole, 0)
	if !ellipsis {
		return masked
	}
	return m.maskBeginning(masked) + "…"
}

// maskBeginning hides the beginning of a secret at the end of a text that is masked already.
func (m *masker) maskBeginning(masked string) string {
	for n := min(len(masked), m.longest()-1); n >= minSecretCharacters; n-- {
		if m.begins(masked[len(masked)-n:]) {
			return masked[:len(masked)-n] + maskMark
		}
	}
	return masked
}

// begins says whether any secret starts with these bytes.
func (m *masker) begins(part string) bool {
	for _, secret := range m.secrets {
		if strings.HasPrefix(secret, part) {
			return true
		}
	}
	return false
}

type span struct{ start, end int }

// places gives the places of secrets of at least some size in text.
func (m *masker) places(text string, size int) []span {
	var found []span
	for _, secret := range m.secrets {
		if len(secret) < size {
			continue
		}
		for from := 0; ; {
			i := strings.Index(text[from:], secret)
			if i < 0 {
				break
			}
			found = append(found, span{from + i, from + i + len(secret)})
			from += i + 1
		}
	}
	return found
}

// unwrapped gives text without its line ends and the blanks that begin the lines after them, and where in text each
// of the bytes that are left stands.
func unwrapped(text string) (string, []int) {
	if !strings.Contains(text, "\n") {
		return text, nil
	}
	flat, at := make([]byte, 0, len(text)), make([]int, 0, len(text))
	begins := false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\n':
			begins = true
		case begins && (c == ' ' || c == '\t'):
		default:
			begins = false
			flat, at = append(flat, c), append(at, i)
		}
	}
	return string(flat), at
}

// find gives the places of secrets in text, in order, overlapping ones joined. A secret is also found where it goes on
// in the next line, as programs wrap base64 and long values.
func (m *masker) find(text string) []span {
	found := m.places(text, 1)
	if flat, at := unwrapped(text); len(flat) < len(text) {
		for _, place := range m.places(flat, minSplitBytes) {
			found = append(found, span{at[place.start], at[place.end-1] + 1})
		}
	}
	slices.SortFunc(found, func(a, b span) int { return a.start - b.start })
	joined := found[:0]
	for _, next := range found {
		if n := len(joined); n > 0 && next.start < joined[n-1].end {
			joined[n-1].end = max(joined[n-1].end, next.end)
			continue
		}
		joined = append(joined, next)
	}
	return joined
}
