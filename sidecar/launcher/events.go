package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// protocolVersion is the version of the protocol on the socket.
const protocolVersion = 1

// controlByte starts a control line; no JSON text starts with it.
const controlByte = 0x00

type helloEvent struct {
	Event       string  `json:"event"`
	Version     int     `json:"version"`
	Incarnation string  `json:"incarnation"`
	PID         int     `json:"pid"`
	StartTime   float64 `json:"startTime"` // Unix time in seconds
	// LinesTaken counts the lines that were taken from all connections before this one: what a relay wrote to a connection
	// that broke, and is not among them, has not reached the server and never will.
	LinesTaken int64 `json:"linesTaken"`
	// StdoutClosed: the server closed its stdout, so that it can never answer (again).
	StdoutClosed bool `json:"stdoutClosed"`
	// StdinClosed: the server closed its stdin, so that nothing reaches it any more.
	StdinClosed bool `json:"stdinClosed"`
}

type plainEvent struct {
	Event string `json:"event"`
}

// textsEvent asks for texts to be masked, and answers with them in the same order.
type textsEvent struct {
	Event string   `json:"event"`
	ID    int64    `json:"id"`
	Texts []string `json:"texts"`
}

// progressEvent answers the question how the start gets on: Line is what the server wrote to stderr last.
type progressEvent struct {
	Event string `json:"event"`
	Line  string `json:"line"`
}

type terminatingEvent struct {
	Event        string  `json:"event"`
	DrainSeconds float64 `json:"drainSeconds"`
}

type oversizedEvent struct {
	Event string `json:"event"`
	Bytes int64  `json:"bytes"` // length of the dropped line without its newline
	Head  string `json:"head"`  // its first characters
	Tail  string `json:"tail"`  // its last characters
}

type exitEvent struct {
	Event string `json:"event"`
	exitFacts
	Time float64 `json:"time"` // Unix time in seconds
}

// exitFacts are the members that the exit event and the termination message share.
type exitFacts struct {
	ExitCode   int     `json:"exitCode"`
	Signal     *string `json:"signal"`
	Reason     string  `json:"reason"`
	Message    string  `json:"message"`
	StderrTail string  `json:"stderrTail"`
}

// controlLine encodes an event as a line of the socket protocol.
func controlLine(event any) []byte {
	return append(append([]byte{controlByte}, encodeJSON(event)...), '\n')
}

// encodeJSON gives a value of one of the types above as one line of JSON without a newline.
func encodeJSON(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // saves room in the termination message
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("cannot encode %T: %v", value, err)) // strings and numbers only: a fault of this program
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'})
}

func unixSeconds(t time.Time) float64 {
	return float64(t.UnixMilli()) / 1000
}
