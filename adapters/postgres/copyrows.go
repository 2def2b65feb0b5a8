package postgres

import (
	"encoding/binary"

	"github.com/google/uuid"

	"waybill/domain"
)

// copyRows writes rows as COPY takes them in binary (PostgreSQL's manual, COPY, file
// formats): values in their own types, without a look at each one's type at run time, which
// costs more than the fold.
type copyRows struct{ buf []byte }

// begin writes the header.
func (c *copyRows) begin() {
	c.buf = append(c.buf, "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
}

// row begins a row of so many values.
func (c *copyRows) row(columns int) { c.buf = binary.BigEndian.AppendUint16(c.buf, uint16(columns)) }

// end writes the trailer.
func (c *copyRows) end() { c.buf = binary.BigEndian.AppendUint16(c.buf, 0xffff) }

func (c *copyRows) null() { c.length(-1) }

func (c *copyRows) length(n int) { c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(int32(n))) }

// UUID writes an id; the zero one is null.
func (c *copyRows) UUID(id uuid.UUID) {
	if id == uuid.Nil {
		c.null()
		return
	}
	c.Bytes(id[:])
}

// Text writes a text.
func (c *copyRows) Text(s string) {
	c.length(len(s))
	c.buf = append(c.buf, s...)
}

// Optional writes a text; the empty one is null.
func (c *copyRows) Optional(s string) {
	if s == "" {
		c.null()
		return
	}
	c.Text(s)
}

// Integer writes a number of 32 bits.
func (c *copyRows) Integer(n int) {
	c.length(4)
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(int32(n)))
}

// Bool writes a truth value.
func (c *copyRows) Bool(b bool) {
	c.length(1)
	if b {
		c.buf = append(c.buf, 1)
	} else {
		c.buf = append(c.buf, 0)
	}
}

// At writes a moment; the zero one is null.
func (c *copyRows) At(i domain.Instant) {
	if i.IsZero() {
		c.null()
		return
	}
	c.length(8)
	c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(i.UnixMicro()-epoch2000))
}

// Bytes writes bytes, or JSON; none at all is empty, not null.
func (c *copyRows) Bytes(b []byte) {
	c.length(len(b))
	c.buf = append(c.buf, b...)
}

// textOID is PostgreSQL's own number of the type text.
const textOID = 25

// Texts writes an array of texts.
func (c *copyRows) Texts(list []string) {
	size := 12
	for _, s := range list {
		size += 4 + len(s)
	}
	dimensions := 0
	if len(list) > 0 {
		dimensions, size = 1, size+8
	}
	c.length(size)
	for _, n := range [...]int{dimensions, 0, textOID} {
		c.length(n)
	}
	if dimensions > 0 {
		c.length(len(list))
		c.length(1)
	}
	for _, s := range list {
		c.Text(s)
	}
}
