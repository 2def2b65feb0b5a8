package main

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/domain"
)

func TestScrub(t *testing.T) {
	t.Parallel()
	for url, texts := range map[string][]string{
		"postgres://u:pass%2Fword@h/db":             {"pass/word", "pass%2Fword", "a pass/word b", "postgres://u:pass%2Fword@h/db"},
		"postgres://h/db?user=u&password=pass/word": {"pass/word", "password=pass/word&x"},
		"host=h password='pass/word' user=u":        {"pass/word", "password='pass/word'"},
		"host=h password = pass/word":               {"pass/word"},
		"":                                          {"postgres://u:pass/word@h", "PASSWORD=pass/word", "pwd = 'pass/word x'", "wbk_pass/word", "whsec_pass/word="},
	} {
		for _, text := range texts {
			if got := scrub(text, url); strings.Contains(got, "pass") && !strings.Contains(got, "password=***") || strings.Contains(got, "word x") || strings.Contains(got, "/word") {
				t.Errorf("scrub(%q, %q) = %q", text, url, got)
			}
		}
	}
	if got := scrub("connect to h: refused", "postgres://u:a@h/db"); got != "connect to h: refused" {
		t.Errorf("a short password tears words: %q", got)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	wrapped := fmt.Errorf("create key: %w", domain.ErrTenantNotFound)
	for _, c := range []struct {
		err  error
		exit int
		code string
	}{
		{wrapped, exitRefused, "tenant_not_found"},
		{domain.ErrInvalidRequest, exitUsage, "invalid_request"},
		{domain.ErrStorageUnavailable, exitFailed, "storage_unavailable"},
		{domain.ErrSchemaUnknown, exitRefused, "schema_unknown"},
		{domain.ErrStale, exitRefused, "stale_version"},
		{usageError("x"), exitUsage, "usage"},
		{context.Canceled, exitFailed, "interrupted"},
		{&fs.PathError{Op: "open", Path: "f", Err: syscall.EEXIST}, exitFailed, "failed"},
		{&os.LinkError{Op: "link", Err: syscall.EEXIST}, exitFailed, "failed"},
		{errors.New("x"), exitFailed, "failed"},
	} {
		if exit, code, _ := verdict(c.err); exit != c.exit || code != c.code {
			t.Errorf("%v: exit %d %s, want %d %s", c.err, exit, code, c.exit, c.code)
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		into encoding.TextUnmarshaler
		text string
		ok   bool
	}{
		{&identity{}, "0198c1d2-0000-7000-8000-000000000000", true},
		{&identity{}, "{0198c1d2-0000-7000-8000-000000000000}", false},
		{&identity{}, "0198c1d2000070008000000000000000", false},
		{&identity{}, "00000000-0000-0000-0000-000000000000", false},
		{new(moment), "2026-01-31T12:00:00+01:00", true},
		{new(moment), "2026-01-31", false},
		{new(moment), "1h30m", true},
		{new(moment), "-1h", false},
		{new(payloadLimit), "1", true},
		{new(payloadLimit), "512KiB", true},
		{new(payloadLimit), "32MiB", true},
		{new(payloadLimit), "33MiB", false},
		{new(payloadLimit), "1MB", false},
		{new(payloadLimit), "0", false},
		{new(payloadLimit), "-1", false},
		{new(payloadLimit), "", false},
	} {
		if err := c.into.UnmarshalText([]byte(c.text)); (err == nil) != c.ok {
			t.Errorf("%T of %q: %v", c.into, c.text, err)
		}
	}
}

type fixedClock struct{ domain.Instant }

// Now is the fixed time.
func (c fixedClock) Now(context.Context) (domain.Instant, error) { return c.Instant, nil }

func TestMoments(t *testing.T) {
	t.Parallel()
	now := domain.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for text, want := range map[string]domain.Instant{
		"2h":                        now.After(-2 * time.Hour),
		"0s":                        now,
		"2026-01-01T00:00:00+02:00": domain.At(time.Date(2025, 12, 31, 22, 0, 0, 0, time.UTC)),
	} {
		var m moment
		if err := m.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := m.instant(t.Context(), fixedClock{now}); err != nil || got != want {
			t.Errorf("%s is %s, want %s (%v)", text, got, want, err)
		}
	}
	if got, _ := (moment{}).instant(t.Context(), fixedClock{now}); !got.IsZero() {
		t.Errorf("no moment is %s", got)
	}
}

// TestKeyset pages through rows, however many are asked for and there are.
func TestKeyset(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rows, limit, want int }{
		{0, 0, 0}, {3, 0, 3}, {3, 2, 2}, {3, 3, 3}, {maxPage, 0, maxPage}, {maxPage + 1, 0, maxPage + 1},
		{3 * maxPage, maxPage + 1, maxPage + 1}, {10, 50, 10},
	} {
		var got []int
		pages := keyset(c.limit, 0, func(n int) int { return n }, func(after, n int) ([]int, error) {
			var page []int
			for i := after + 1; i <= c.rows && len(page) < n; i++ {
				page = append(page, i)
			}
			return page, nil
		})
		for page, err := range pages {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, page...)
		}
		if len(got) != c.want || !slices.IsSorted(got) {
			t.Errorf("%d rows, limit %d: %d", c.rows, c.limit, len(got))
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a – b":          "a – b",
		"a\x1b[2Jb":      `a\x1b[2Jb`,
		"a\nb\tc":        `a\nb\tc`,
		"x\u202eevil":    `x\u202eevil`,
		"bad \xff bytes": "bad \uFFFD bytes",
	} {
		if got := plain(text); got != want {
			t.Errorf("plain(%q) = %q, want %q", text, got, want)
		}
	}
}
