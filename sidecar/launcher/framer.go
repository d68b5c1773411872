package main

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const (
	// headCharacters and tailCharacters of a dropped line are told to the relay: it may find the request's id there.
	headCharacters = 4096
	tailCharacters = 256
	tailRoom       = tailCharacters * utf8.UTFMax
	// maxControlBytes bounds a control line from the relay.
	maxControlBytes = 64 << 10
)

// droppedLine is what is known of a line that was longer than allowed: its length in bytes, its first headCharacters and
// its last tailCharacters.
type droppedLine struct {
	length     int64
	head, tail string
}

// framer cuts a byte stream into lines and puts them on a queue, byte for byte. Every byte is looked at once, however
// long its line. All methods want the queue's lock held.
type framer struct {
	q   *queue
	max int
	// oversized is told about each line that was longer than max and therefore dropped.
	oversized func(droppedLine)
	// control receives lines that start with controlByte, without it and the newline. Nil: leading control bytes are
	// removed instead, so that the peer cannot forge control lines.
	control func(line []byte)

	lines     int64 // that ended, of whatever kind
	length    int64 // of the current line so far
	dropping  bool  // the current line is too long
	head      string
	tail      []byte // the last bytes of a line that is too long, at most tailRoom
	diverting bool   // the current line is a control line
	diverted  []byte
}

// feed takes the next bytes of the stream.
func (f *framer) feed(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			f.part(p)
			return
		}
		f.part(p[:i])
		f.endLine()
		p = p[i+1:]
	}
}

// finish ends the stream: a last line without a newline gets one.
func (f *framer) finish() {
	if f.length > 0 {
		f.endLine()
	}
}

// reset forgets an incomplete line.
func (f *framer) reset() {
	f.q.abandon()
	f.length, f.dropping, f.head, f.tail = 0, false, "", f.tail[:0]
	f.diverting, f.diverted = false, nil
}

// part takes bytes of one line, without the newline.
func (f *framer) part(p []byte) {
	if f.length == 0 && len(p) > 0 && p[0] == controlByte && !f.diverting {
		if f.control == nil {
			p = bytes.TrimLeft(p, "\x00")
		} else {
			f.diverting = true
			p = p[1:]
		}
	}
	switch {
	case f.diverting:
		f.diverted = append(f.diverted, p[:min(len(p), maxControlBytes-len(f.diverted))]...)
	case f.dropping:
		f.length += int64(len(p))
		f.keepTail(p)
	default:
		f.keep(p)
	}
}

func (f *framer) keep(p []byte) {
	room := f.max - int(f.length)
	f.length += int64(len(p))
	if len(p) <= room {
		f.q.extend(p)
		return
	}
	f.q.extend(p[:room])
	f.head = characters(f.q.incomplete(f.q.committed, headCharacters*utf8.UTFMax), headCharacters)
	f.keepTail(f.q.incomplete(f.q.end-tailRoom, tailRoom))
	f.q.abandon()
	f.dropping = true
	f.keepTail(p[room:])
}

// keepTail remembers the last bytes of a line that is dropped.
func (f *framer) keepTail(p []byte) {
	p = p[max(0, len(p)-tailRoom):]
	excess := max(0, len(f.tail)+len(p)-tailRoom)
	f.tail = append(append(f.tail[:0], f.tail[excess:]...), p...)
}

func (f *framer) endLine() {
	f.lines++
	switch {
	case f.diverting:
		f.control(f.diverted)
	case f.dropping:
		f.oversized(droppedLine{f.length, f.head, lastCharacters(f.tail, tailCharacters)})
	default:
		f.q.extend([]byte{'\n'})
		f.q.commit()
	}
	f.length, f.dropping, f.head, f.tail = 0, false, "", f.tail[:0]
	f.diverting, f.diverted = false, nil
}

// characters gives the first n characters of UTF-8 text; what is not UTF-8 becomes a replacement mark.
func characters(text []byte, n int) string {
	end := 0
	for ; n > 0 && end < len(text); n-- {
		_, size := utf8.DecodeRune(text[end:])
		end += size
	}
	return strings.ToValidUTF8(string(text[:end]), "\uFFFD")
}

// lastCharacters gives the last n characters in the same way.
func lastCharacters(text []byte, n int) string {
	start := len(text)
	for ; n > 0 && start > 0; n-- {
		_, size := utf8.DecodeLastRune(text[:start])
		start -= size
	}
	return strings.ToValidUTF8(string(text[start:]), "\uFFFD")
}
