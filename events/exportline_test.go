package events

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
)

var lineSamples = []Record{
	{Envelope: Envelope{Tenant: "default", Stream: DeliveryStream, StreamID: uuid.UUID{1}, Actor: "key:a", EndpointID: uuid.UUID{2},
		TraceParent: "00-a-b-01", RecordedAt: domain.At(time.Unix(1, 5000))}, Seq: 1, Position: 7, Name: "delivery.delivered", Version: 1,
		Data: json.RawMessage(`{"attempt":1}`), Hash: Hash{3}},
	{Envelope: Envelope{Tenant: "t-1", Stream: AdminStream, StreamID: uuid.UUID{9}, Actor: "worker:\"a\",\r\n<b>\n\u2028é",
		RecordedAt: domain.At(time.Unix(1e9, 0))}, Seq: 12, Position: 1 << 60, Name: "admin.key_created", Version: 2,
		Data: json.RawMessage(`{"a":"\u003c,\"","b":[1,2]}`)},
}

// TestLines: what is written is what the contract shows, and is read back as it was.
func TestLines(t *testing.T) {
	for _, r := range lineSamples {
		for _, e := range []Encoding{JSONLines, CSV} {
			line := e.append(nil, r)
			got, err := e.decode(bytes.TrimSuffix(line, e.end()))
			if err != nil || !reflect.DeepEqual(got, r) {
				t.Errorf("%s: %v\n%+v\n%+v", line, err, got, r)
			}
		}
		want, _ := json.Marshal(r)
		if got := appendJSON(nil, r); string(got) != string(want)+"\n" {
			t.Errorf("written %s, the contract has %s", got, want)
		}
	}
	header, _ := csv.NewReader(strings.NewReader(csvHeader)).Read()
	row, err := csv.NewReader(bytes.NewReader(appendCSV(nil, lineSamples[0]))).Read()
	if err != nil || len(row) != len(header) || row[11] != `{"attempt":1}` || header[11] != "data" || row[7] != "1970-01-01T00:00:01.000005Z" {
		t.Errorf("others read %q %q %v", header, row, err)
	}
	for _, cell := range row {
		if strings.IndexAny(cell, "=+-@\t\r") == 0 {
			t.Errorf("a spreadsheet computes %q", cell)
		}
	}
}

// FuzzLine: a line that is read is written again byte for byte, in either encoding.
func FuzzLine(f *testing.F) {
	for _, r := range lineSamples {
		f.Add(appendJSON(nil, r))
		f.Add(appendCSV(nil, r))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, e := range []Encoding{JSONLines, CSV} {
			if r, err := e.decode(line); err == nil && !bytes.Equal(e.append(nil, r), append(bytes.Clone(line), e.end()...)) {
				t.Errorf("%q is read and written as %q", line, e.append(nil, r))
			}
			rest := line
			for len(rest) > 0 { // the splitter always gets on
				n, _, err := e.split(rest, true)
				if err != nil || n <= 0 || n > len(rest) {
					t.Fatalf("%q: %d %v", rest, n, err)
				}
				rest = rest[n:]
			}
		}
	})
}

// TestChainsForget: the memory of streams is bounded, and what is forgotten is asked for.
func TestChainsForget(t *testing.T) {
	c := NewChains()
	first := Record{Envelope: Envelope{Stream: DeliveryStream, StreamID: uuid.UUID{1}}, Seq: 1, Hash: Hash{1}}
	c.Follow(first)
	second := first
	second.Seq, second.Hash = 2, Hash{2}
	if previous, known, fault := c.Follow(second); previous != first.Hash || !known || fault {
		t.Error(previous, known, fault)
	}
	if _, _, fault := c.Follow(second); !fault {
		t.Error("the same seq twice")
	}
	for i := range 2 * nearby {
		c.Follow(Record{Envelope: Envelope{Stream: DeliveryStream, StreamID: uuid.UUID{2, byte(i), byte(i >> 8), byte(i >> 16)}}, Seq: 1})
	}
	second.Seq = 3
	if _, known, fault := c.Follow(second); known || fault || len(c.last) > nearby || len(c.ring) > nearby {
		t.Error(known, fault, len(c.last), len(c.ring))
	}
}
