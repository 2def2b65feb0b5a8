package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"waybill/domain"
)

// prealloc is how much memory a request gets for its body before any of it has come.
const prealloc = 64 << 10

// readBody returns a request's body as it came, at most limit bytes. A larger one is
// refused before it is read whole, at once where it says its length. So is one for which
// there is no room beside the others: each counts weight times, until it is answered.
func (s *server) readBody(ctx context.Context, limit, weight int64) (body []byte, err error) {
	c := callOf(ctx)
	r := c.request
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	if c.leave, err = s.bodies.enter(weight * bodyWeight(r, limit)); err != nil {
		return nil, err
	}
	patience := http.NewResponseController(c.writer)
	_ = patience.SetReadDeadline(time.Now().Add(s.Timeout)) // where the connection knows no deadline, the server's holds
	read := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 512), prealloc)))
	n, err := read.ReadFrom(io.LimitReader(r.Body, limit+1))
	switch {
	case n > limit:
		return nil, tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, domain.ErrInvalidRequest.With("the request's body came too slowly")
	case err != nil:
		return nil, domain.ErrInvalidRequest.With("the request's body could not be read to its end")
	}
	_ = patience.SetReadDeadline(time.Time{})
	return read.Bytes(), nil
}

func tooLarge(limit int64) error {
	return domain.ErrPayloadTooLarge.With(fmt.Sprintf("the payload is larger than %d bytes", limit))
}

// rawBody describes a body of any bytes.
func rawBody(about string) *huma.RequestBody {
	return &huma.RequestBody{Description: about, Content: map[string]*huma.MediaType{
		"*/*": {Schema: &huma.Schema{Type: "string", Format: "binary"}},
	}}
}
