package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
)

// maxPage is how many rows are read at a time.
const maxPage = 500

// keyset walks pages of at most limit rows in all (0: every row), each from beyond
// the one before.
func keyset[T, C any](limit int, from C, beyond func(T) C, fetch func(C, int) ([]T, error)) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		for left := limit; ; {
			size := maxPage
			if limit > 0 {
				size = min(left, maxPage)
			}
			page, err := fetch(from, size)
			if err != nil || len(page) == 0 {
				if err != nil {
					yield(nil, err)
				}
				return
			}
			left -= len(page)
			if !yield(page, nil) || len(page) < size || limit > 0 && left <= 0 {
				return
			}
			from = beyond(page[len(page)-1])
		}
	}
}

// onePage is a list that is not paged.
func onePage[T any](list []T, err error) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) { yield(list, err) }
}

// listing is how values are shown: each as a row below the heads, or as it is in
// JSON.
type listing[T any] struct {
	heads []string
	row   func(T) []string
}

// print shows pages as they come.
func (l listing[T]) print(in *invocation, pages iter.Seq2[[]T, error]) error {
	out := bufio.NewWriter(in.out)
	for page, err := range pages {
		if err != nil {
			return err
		}
		if err := l.page(in, out, page); err != nil {
			return err
		}
		l.heads = nil
	}
	return out.Flush()
}

func (l listing[T]) page(in *invocation, out io.Writer, page []T) error {
	if in.JSON {
		return printJSON(out, page...)
	}
	t := newTable(out)
	t.row(l.heads...)
	for _, v := range page {
		t.row(l.row(v)...)
	}
	return t.Flush()
}

// printJSON writes one JSON value a line.
func printJSON[T any](out io.Writer, values ...T) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// table aligns cells in columns, whatever is in them.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer) table {
	return table{tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)}
}

// row adds a line; no cells add none. What cannot be written is said by Flush.
func (t table) row(cells ...string) {
	if len(cells) == 0 {
		return
	}
	shown := make([]string, len(cells))
	for i, c := range cells {
		shown[i] = plain(c)
	}
	_, _ = fmt.Fprintln(t.Writer, strings.TrimRight(strings.Join(shown, "\t"), " \t"))
}

// show prints one value: its fields, a line each, or as it is in JSON.
func show(in *invocation, v any, fields ...[2]string) error {
	if in.JSON {
		return printJSON(in.out, v)
	}
	t := newTable(in.out)
	for _, f := range fields {
		if f[1] != "" {
			t.row(f[0], f[1])
		}
	}
	return t.Flush()
}

// say prints one line, or one JSON value.
func say(in *invocation, v any, words ...string) error {
	if in.JSON {
		return printJSON(in.out, v)
	}
	_, err := fmt.Fprintln(in.out, plain(strings.Join(words, " ")))
	return err
}

// plain escapes what could move a cursor, break a line or deceive a reader: text
// from outside stays text on a terminal.
func plain(s string) string {
	clean := func(r rune) bool { return r == unicode.ReplacementChar || r != ' ' && !unicode.IsGraphic(r) }
	if !strings.ContainsFunc(s, clean) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if clean(r) && r != unicode.ReplacementChar {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// dash stands for nothing in a table.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
