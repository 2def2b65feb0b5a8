package postgres

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

var (
	//go:embed sql/read_folding.sql
	readFolding string
	//go:embed sql/read_folding_of.sql
	readFoldingOf string
	//go:embed sql/find_range_end.sql
	findRangeEnd string
)

// How the copy is cut up.
const (
	rangeEvents = 50_000 // in a range of streams, about
	saidEvents  = 2_000  // that Done is told of at a time
)

// span is a range of streams: above after, up to until; no until: to the last.
type span struct {
	after uuid.UUID
	until any
}

// copy folds every stream into the shadow. Each range is read in a snapshot of its own,
// taken after the position that the rebuild began at was noted.
func (r *rebuild) copy(ctx context.Context) error {
	r.o.Phase("copy", r.after)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	spans := make(chan span)
	var work sync.WaitGroup
	var streams, records atomic.Int64
	for range r.o.Workers {
		work.Go(func() {
			for s := range spans {
				n, m, err := r.copySpan(ctx, s)
				if err != nil {
					stop(err)
					return
				}
				streams.Add(n)
				records.Add(m)
			}
		})
	}
	err := r.spans(ctx, spans)
	close(spans)
	work.Wait()
	r.report.Streams, r.report.Rows, r.report.Events = streams.Load(), streams.Load(), records.Load()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// spans cuts the log into ranges of about as many events.
func (r *rebuild) spans(ctx context.Context, to chan<- span) error {
	for after := uuid.Nil; ; {
		next := span{after: after}
		var end uuid.UUID
		err := r.pool.QueryRow(ctx, r.schema.SQL(findRangeEnd), args{"stream": string(r.p.Stream), "after": after, "n": rangeEvents}).Scan(&end)
		last := errors.Is(err, pgx.ErrNoRows)
		if err != nil && !last {
			return err
		}
		if !last {
			next.until, after = end, end
		}
		select {
		case to <- next:
		case <-ctx.Done():
			return ctx.Err()
		}
		if last {
			return nil
		}
	}
}

func (r *rebuild) copySpan(ctx context.Context, s span) (streams, records int64, err error) {
	read, err := r.pool.Acquire(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer read.Release()
	write, err := r.pool.Acquire(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer write.Release()
	return r.fold(ctx, read.Conn(), write.Conn(), readFolding, args{"after": s.after, "until": s.until})
}

// refold puts streams anew into the shadow, which has its key by then.
func (r *rebuild) refold(ctx context.Context, read, write *pgx.Conn, ids []uuid.UUID) error {
	shadow := r.shadow().Sanitize()
	tag, err := write.Exec(ctx, "delete from "+shadow+" where id = any ($1)", ids)
	if err != nil {
		return err
	}
	streams, records, err := r.fold(ctx, read, write, readFoldingOf, args{"ids": ids})
	r.report.Streams, r.report.Events = r.report.Streams+streams, r.report.Events+records
	r.report.Rows += streams - tag.RowsAffected()
	return err
}

func (r *rebuild) shadow() pgx.Identifier {
	return pgx.Identifier{string(r.schema), r.p.Name + "_shadow"}
}

// fold reads records stream by stream and writes a row for each stream, both at once.
func (r *rebuild) fold(ctx context.Context, read, write *pgx.Conn, sql string, a args) (streams, records int64, err error) {
	rows, err := read.Query(ctx, r.schema.SQL(sql), foldingFormats, a.with(args{"stream": string(r.p.Stream)}))
	if err != nil {
		return 0, 0, err
	}
	defer rows.Close()
	fold := r.p.NewFold()
	source := &folded{columns: len(fold.Columns()), rows: rows, fold: fold, kind: r.p.Stream, done: r.o.Done}
	sql = fmt.Sprintf("copy %s (%s) from stdin binary", r.shadow().Sanitize(), strings.Join(fold.Columns(), ", "))
	tag, err := write.PgConn().CopyFrom(ctx, source, sql)
	r.o.Done(source.count % saidEvents)
	if source.err != nil { // the server repeats it, in fewer words
		err = source.err
	}
	return tag.RowsAffected(), source.count, err
}

// folded is the rows of streams as COPY takes them in binary, computed while they are read.
type folded struct {
	copyRows
	columns int
	rows    pgx.Rows
	fold    projections.Fold
	kind    events.Stream
	done    func(int64)
	count   int64
	record  events.Record // the first of the next stream, if more
	more    bool
	err     error
	read    int  // of the buffer
	ended   bool // the buffer holds the end
}

// copyChunk is how much is computed at a time.
const copyChunk = 64 << 10

// Read gives the next bytes.
func (f *folded) Read(to []byte) (int, error) {
	if f.read == len(f.buf) {
		if f.ended {
			return 0, io.EOF
		}
		if f.err = f.fill(); f.err != nil {
			return 0, f.err
		}
	}
	n := copy(to, f.buf[f.read:])
	f.read += n
	return n, nil
}

// fill computes the next rows.
func (f *folded) fill() error {
	first := f.buf == nil
	f.buf, f.read = f.buf[:0], 0
	if first {
		f.begin()
		if err := f.next(); err != nil {
			return err
		}
	}
	for f.more && len(f.buf) < copyChunk {
		if err := f.stream(); err != nil {
			return err
		}
	}
	if f.ended = !f.more; f.ended {
		f.end()
	}
	return nil
}

// stream folds the next stream.
func (f *folded) stream() error {
	id := f.record.StreamID
	f.fold.Begin(id)
	for f.more && f.record.StreamID == id {
		if err := f.fold.Add(f.record); err != nil {
			return err
		}
		if err := f.next(); err != nil {
			return err
		}
	}
	f.row(f.columns)
	return f.fold.Row(f)
}

// next takes the next record, if there is one.
func (f *folded) next() error {
	if f.more = f.rows.Next(); !f.more {
		return f.rows.Err()
	}
	if f.count++; f.count%saidEvents == 0 {
		f.done(saidEvents)
	}
	return f.parse(f.rows.RawValues())
}

// epoch2000 is where PostgreSQL counts microseconds from, in those of Unix.
const epoch2000 = 946_684_800_000_000

// foldingFormats asks for the columns stream_id, tenant, seq, name, version, recorded_at,
// hash, data in the form that costs least: PostgreSQL takes more time to write a text in
// binary.
var foldingFormats = pgx.QueryResultFormats{
	pgx.BinaryFormatCode, pgx.TextFormatCode, pgx.BinaryFormatCode, pgx.TextFormatCode, pgx.BinaryFormatCode,
	pgx.BinaryFormatCode, pgx.BinaryFormatCode, pgx.TextFormatCode,
}

// parse reads the columns of [foldingFormats]: scanning costs as much as all else. The data is valid
// until the next read, and the events that are decoded from it keep none of it.
func (f *folded) parse(v [][]byte) error {
	if len(v) != 8 || len(v[0]) != 16 || len(v[2]) != 4 || len(v[4]) != 4 || len(v[5]) != 8 || len(v[6]) != len(f.record.Hash) {
		return errors.New("a record comes in a form that is not known")
	}
	p := &f.record
	p.Stream = f.kind
	copy(p.StreamID[:], v[0])
	if string(v[1]) != p.Tenant {
		p.Tenant = string(v[1])
	}
	p.Seq = int(int32(binary.BigEndian.Uint32(v[2])))
	if string(v[3]) != p.Name {
		p.Name = string(v[3])
	}
	p.Version = int(int32(binary.BigEndian.Uint32(v[4])))
	p.RecordedAt = domain.At(time.UnixMicro(int64(binary.BigEndian.Uint64(v[5])) + epoch2000))
	copy(p.Hash[:], v[6])
	p.Data = v[7]
	return nil
}
