package projections

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"waybill/domain"
	"waybill/events"
)

// recordFormats asks for a record's columns, beside its kind, which whoever reads one kind
// knows, in the form that costs least: PostgreSQL takes more time to write a text in binary.
var recordFormats = pgx.QueryResultFormats{
	pgtype.TextFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode,
	pgtype.TextFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode, pgtype.TextFormatCode,
	pgtype.BinaryFormatCode, pgtype.TextFormatCode, pgtype.TextFormatCode, pgtype.BinaryFormatCode,
}

// epoch is what PostgreSQL counts a timestamptz from, in microseconds since 1970.
const epoch = 946_684_800_000_000

// eachRecord calls do for every record of one kind in a range of ids, stream by stream;
// the record is valid during the call only. It is for whoever reads the whole log: it takes
// a third of ScanRecord's time and allocates nothing per record.
func (r Reader) eachRecord(ctx context.Context, kind events.Stream, s stretch, do func(*events.Record)) error {
	rows, err := r.rangeOf(ctx, kind, s)
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	defer rows.Close()
	var rec events.Record
	rec.Stream = kind
	words, raw := interned{}, binaryOf(rows)
	for rows.Next() {
		if raw {
			err = readRaw(rows.RawValues(), words, &rec)
		} else {
			rec, err = scanRecord(rows, nil)
			rec.Stream = kind
		}
		if err != nil {
			return err
		}
		do(&rec)
	}
	return rows.Err()
}

func (r Reader) rangeOf(ctx context.Context, kind events.Stream, s stretch) (pgx.Rows, error) {
	return r.DB.Query(ctx, r.Schema.SQL(readRange), recordFormats,
		pgx.StrictNamedArgs{"stream": string(kind), "after": s.after, "up_to": s.upTo})
}

// binaryOf says whether rows come in binary, as they were asked for: not over the simple
// protocol, which some poolers need.
func binaryOf(rows pgx.Rows) bool {
	return slices.ContainsFunc(rows.FieldDescriptions(), func(f pgconn.FieldDescription) bool { return f.Format == pgtype.BinaryFormatCode })
}

func readRaw(v [][]byte, words interned, r *events.Record) error {
	if len(v) != len(recordFormats) || len(v[1]) != 16 || len(v[2]) != 4 || len(v[3]) != 8 || len(v[5]) != 4 || len(v[6]) != 8 {
		return fmt.Errorf("read a record: the columns are not those of the log")
	}
	r.Tenant, r.StreamID = words.of(v[0]), uuid.UUID(v[1])
	r.Seq, r.Position = rawInt(v[2]), int64(binary.BigEndian.Uint64(v[3]))
	r.Name, r.Version = words.of(v[4]), rawInt(v[5])
	r.RecordedAt, r.Actor = rawInstant(v[6]), domain.Actor(words.of(v[7]))
	r.EndpointID, r.TraceParent = rawUUID(v[8]), string(v[9])
	r.Data, r.Hash = v[10], rawHash(v[11])
	return nil
}

// The values of columns as the protocol carries them in binary; null is zero.

func rawInt(b []byte) int {
	if len(b) != 4 {
		return 0
	}
	return int(int32(binary.BigEndian.Uint32(b)))
}

func rawInstant(b []byte) domain.Instant {
	if len(b) != 8 {
		return domain.Instant{}
	}
	return domain.Instant{Time: time.UnixMicro(int64(binary.BigEndian.Uint64(b)) + epoch).UTC()}
}

func rawUUID(b []byte) (id uuid.UUID) {
	if len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// rawHash is a hash; what is no hash of ours must not pass for one.
func rawHash(b []byte) (h events.Hash) {
	if len(b) == len(h) {
		copy(h[:], b)
	}
	return h
}

// interned keeps one string for each of the few that a log repeats.
type interned map[string]string

// mostInterned bounds what is kept.
const mostInterned = 4096

func (w interned) of(b []byte) string {
	if s, ok := w[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(w) < mostInterned {
		w[s] = s
	}
	return s
}

// EachOf reads all records of one kind, stream by stream, as fast as they come: what
// anything that looks at them is measured against.
func (r Reader) EachOf(ctx context.Context, kind events.Stream, do func()) error {
	rows, err := r.rangeOf(ctx, kind, stretch{upTo: highest})
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		do()
	}
	return rows.Err()
}
