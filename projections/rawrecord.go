package projections

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"waybill/domain"
	"waybill/events"
)

// rawFormats asks for the columns of [ScanRecord] in the form that costs least to read.
var rawFormats = pgx.QueryResultFormats{
	pgtype.TextFormatCode, pgtype.TextFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode,
	pgtype.TextFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode, pgtype.TextFormatCode, pgtype.BinaryFormatCode,
	pgtype.TextFormatCode, pgtype.TextFormatCode, pgtype.BinaryFormatCode,
}

// epoch is what PostgreSQL counts a timestamptz from, in microseconds since 1970.
const epoch = 946_684_800_000_000

// eachRecord calls do for every record of a query, whose columns are those of
// [ScanRecord]; the record is valid during the call only. It is for whoever reads the
// whole log: it takes a third of ScanRecord's time and allocates nothing per record.
func eachRecord(rows pgx.Rows, do func(*events.Record)) error {
	defer rows.Close()
	var rec events.Record
	words := interned{}
	for rows.Next() {
		if f := rows.FieldDescriptions(); f[2].Format != pgtype.BinaryFormatCode {
			var err error
			if rec, err = ScanRecord(rows); err != nil {
				return err
			}
		} else if err := readRaw(rows.RawValues(), words, &rec); err != nil {
			return err
		}
		do(&rec)
	}
	return rows.Err()
}

func readRaw(v [][]byte, words interned, r *events.Record) error {
	if len(v) != len(rawFormats) || len(v[2]) != 16 || len(v[3]) != 4 || len(v[4]) != 8 || len(v[6]) != 4 || len(v[7]) != 8 {
		return fmt.Errorf("read a record: the columns are not those of the log")
	}
	r.Tenant, r.Stream = words.of(v[0]), events.Stream(words.of(v[1]))
	r.StreamID = uuid.UUID(v[2])
	r.Seq = int(int32(binary.BigEndian.Uint32(v[3])))
	r.Position = int64(binary.BigEndian.Uint64(v[4]))
	r.Name, r.Version = words.of(v[5]), int(int32(binary.BigEndian.Uint32(v[6])))
	r.RecordedAt = domain.Instant{Time: time.UnixMicro(int64(binary.BigEndian.Uint64(v[7])) + epoch).UTC()}
	r.Actor = domain.Actor(words.of(v[8]))
	r.EndpointID = uuid.Nil
	if len(v[9]) == 16 {
		r.EndpointID = uuid.UUID(v[9])
	}
	r.TraceParent = string(v[10])
	r.Data = v[11]
	r.Hash = events.Hash{}
	copy(r.Hash[:], v[12])
	if len(v[12]) != len(r.Hash) { // no hash of ours; it must not pass for one
		r.Hash = events.Hash{}
	}
	return nil
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
	rows, err := r.DB.Query(ctx, r.Schema.SQL(readRange), rawFormats,
		pgx.StrictNamedArgs{"stream": string(kind), "after": uuid.Nil, "up_to": highest})
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		do()
	}
	return rows.Err()
}
