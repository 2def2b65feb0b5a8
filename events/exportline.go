package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/google/uuid"

	"waybill/domain"
)

// Encoding is how an export's file holds events: one a line.
type Encoding string

// The encodings. CSV is RFC 4180 with a header, in the order of the table's columns. No
// cell begins with a character that makes a spreadsheet compute it (= + - @): tenants are
// slugs, actors begin with what they are, data with a brace.
const (
	JSONLines Encoding = "jsonl"
	CSV       Encoding = "csv"
)

// csvHeader is a CSV export's first line.
const csvHeader = "tenant,stream,stream_id,seq,position,name,version,recorded_at,actor,endpoint_id,trace_parent,data,hash\r\n"

// Valid reports whether e is one of the encodings.
func (e Encoding) Valid() bool { return e == JSONLines || e == CSV }

// header is what the file begins with.
func (e Encoding) header() string {
	if e == CSV {
		return csvHeader
	}
	return ""
}

// append adds a record's line.
func (e Encoding) append(b []byte, r Record) []byte {
	if e == CSV {
		return appendCSV(b, r)
	}
	return appendJSON(b, r)
}

var errLine = errors.New("it is not in the form that an export writes")

// decode reads one line, without its end. Only the very bytes that append would write are
// taken.
func (e Encoding) decode(line []byte) (r Record, err error) {
	if e == CSV {
		r, err = decodeCSV(line)
	} else {
		var v recordJSON
		err = json.Unmarshal(line, &v)
		r = v.record()
	}
	if err != nil {
		return r, fmt.Errorf("%w: %w", errLine, err)
	}
	again := e.append(nil, r)
	if !bytes.Equal(bytes.TrimSuffix(again, e.end()), line) {
		return r, errLine
	}
	return r, nil
}

// end is how a line ends.
func (e Encoding) end() []byte {
	if e == CSV {
		return []byte("\r\n")
	}
	return []byte("\n")
}

// split is a [bufio.SplitFunc]. In CSV a line's end between quotes is none.
func (e Encoding) split(data []byte, atEOF bool) (advance int, token []byte, err error) {
	end, open := e.end(), false
	for from := 0; ; {
		i := bytes.Index(data[from:], end)
		if i < 0 {
			break
		}
		i += from
		open = open != (e == CSV && bytes.Count(data[from:i], []byte{'"'})%2 == 1)
		if !open {
			return i + len(end), data[:i], nil
		}
		from = i + len(end)
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

func appendJSON(b []byte, r Record) []byte {
	b = strconv.AppendInt(append(b, `{"position":`...), r.Position, 10)
	b = appendText(append(b, `,"tenant":`...), r.Tenant)
	b = appendText(append(b, `,"stream":`...), string(r.Stream))
	b = append(appendID(append(b, `,"stream_id":"`...), r.StreamID), '"')
	b = strconv.AppendInt(append(b, `,"seq":`...), int64(r.Seq), 10)
	b = appendText(append(b, `,"name":`...), r.Name)
	b = strconv.AppendInt(append(b, `,"version":`...), int64(r.Version), 10)
	b = append(append(append(b, `,"recorded_at":"`...), r.RecordedAt.String()...), '"')
	b = appendText(append(b, `,"actor":`...), string(r.Actor))
	if r.EndpointID != uuid.Nil {
		b = append(appendID(append(b, `,"endpoint_id":"`...), r.EndpointID), '"')
	}
	if r.TraceParent != "" {
		b = appendText(append(b, `,"trace_parent":`...), r.TraceParent)
	}
	b = append(append(b, `,"data":`...), oneLine(r.Data)...)
	return append(append(append(b, `,"hash":"`...), r.Hash.String()...), "\"}\n"...)
}

// oneLine is data without line ends, which the log's own never has.
func oneLine(data json.RawMessage) []byte {
	if bytes.IndexByte(data, '\n') < 0 {
		return data
	}
	var flat bytes.Buffer
	if json.Compact(&flat, data) != nil {
		return []byte("null")
	}
	return flat.Bytes()
}

func appendID(b []byte, id uuid.UUID) []byte { return append(b, id.String()...) }

// appendText adds a JSON string.
func appendText(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return append(b, mustJSON(s)...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendCSV(b []byte, r Record) []byte {
	endpoint := ""
	if r.EndpointID != uuid.Nil {
		endpoint = r.EndpointID.String()
	}
	for i, cell := range []string{r.Tenant, string(r.Stream), r.StreamID.String(), strconv.Itoa(r.Seq), strconv.FormatInt(r.Position, 10),
		r.Name, strconv.Itoa(r.Version), r.RecordedAt.String(), string(r.Actor), endpoint, r.TraceParent, string(r.Data), r.Hash.String()} {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCell(b, cell)
	}
	return append(b, "\r\n"...)
}

func appendCell(b []byte, cell string) []byte {
	plain := true
	for i := 0; i < len(cell); i++ {
		c := cell[i]
		plain = plain && c != '"' && c != ',' && c != '\r' && c != '\n'
	}
	if plain {
		return append(b, cell...)
	}
	b = append(b, '"')
	for i := 0; i < len(cell); i++ {
		if cell[i] == '"' {
			b = append(b, '"')
		}
		b = append(b, cell[i])
	}
	return append(b, '"')
}

// cells splits a line of CSV. What is odd is left to the comparison in decode.
func cells(line []byte) []string {
	var list []string
	var cell []byte
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"' && quoted && i+1 < len(line) && line[i+1] == '"':
			cell = append(cell, c)
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			list, cell = append(list, string(cell)), nil
		default:
			cell = append(cell, c)
		}
	}
	return append(list, string(cell))
}

func decodeCSV(line []byte) (r Record, err error) {
	c := cells(line)
	if len(c) != 13 {
		return r, fmt.Errorf("%d cells, not 13", len(c))
	}
	var at domain.Instant
	var id, endpoint uuid.UUID
	seq, err1 := strconv.Atoi(c[3])
	position, err2 := strconv.ParseInt(c[4], 10, 64)
	version, err3 := strconv.Atoi(c[6])
	err4 := id.UnmarshalText([]byte(c[2]))
	err5 := at.UnmarshalText([]byte(c[7]))
	if c[9] != "" {
		err = endpoint.UnmarshalText([]byte(c[9]))
	}
	if err = errors.Join(err, err1, err2, err3, err4, err5, r.Hash.UnmarshalText([]byte(c[12]))); err != nil {
		return r, err
	}
	r.Envelope = Envelope{Tenant: c[0], Stream: Stream(c[1]), StreamID: id, RecordedAt: at, Actor: domain.Actor(c[8]),
		EndpointID: endpoint, TraceParent: c[10]}
	r.Seq, r.Position, r.Name, r.Version, r.Data = seq, position, c[5], version, json.RawMessage(c[11])
	return r, nil
}
