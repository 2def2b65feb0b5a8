package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// exportCmd writes history for an auditor.
type exportCmd struct {
	Since      moment   `required:"" placeholder:"T" help:"Recorded at or after T: RFC 3339, or a duration ago (720h)."`
	Until      moment   `required:"" placeholder:"T" help:"Recorded before T."`
	Type       []string `placeholder:"T" help:"Only events of this name, such as delivery.attempted, or of all that begin alike: delivery.*. May be repeated."`
	AllTenants bool     `help:"Of every tenant, not of --tenant alone."`
	Format     string   `required:"" placeholder:"F" help:"jsonl or csv."`
	Out        string   `required:"" placeholder:"F" help:"A new file; its manifest is put beside it as F.manifest.json."`
	SigningKey string   `placeholder:"F" help:"The key that signs the manifest and the checkpoint in it; without one nobody vouches for them."`
}

// exportView is what an export says of itself.
type exportView struct {
	File     string      `json:"file"`
	Manifest string      `json:"manifest"`
	Count    int64       `json:"count"`
	Bytes    int64       `json:"bytes"`
	SHA256   events.Hash `json:"sha256"`
	First    int64       `json:"first"`
	Last     int64       `json:"last"`
	Signed   bool        `json:"signed"`
}

// Run exports.
func (c *exportCmd) Run(ctx context.Context, in *invocation) error {
	encoding := events.Encoding(c.Format)
	if !encoding.Valid() {
		return domain.ErrUnsupportedFormat.With(fmt.Sprintf("%.20q is not a format of exports; they are jsonl or csv", c.Format))
	}
	names, err := eventNames(c.Type)
	if err != nil {
		return err
	}
	key, err := signing{SigningKey: c.SigningKey}.key()
	if err != nil {
		return err
	}
	return in.withTenant(ctx, func(s *session) error {
		head := events.ExportHead{Encoding: encoding, Tenant: in.Tenant, Names: names}
		if c.AllTenants {
			head.Tenant = ""
		}
		if head.Since, head.Until, err = (span{c.Since, c.Until}).resolve(ctx, s); err != nil {
			return err
		}
		v, err := exportJob{in: in, s: s, from: s.Reader, key: key, out: c.Out}.run(ctx, head)
		if err != nil {
			return err
		}
		return show(in, v, [2]string{"file", v.File}, [2]string{"manifest", v.Manifest}, [2]string{"events", fmt.Sprint(v.Count)},
			[2]string{"sha256", v.SHA256.String()}, [2]string{"checked by", "waybill verify-export " + v.File})
	})
}

// eventNames lists the names that patterns stand for; none for none.
func eventNames(patterns []string) (names []string, err error) {
	for _, p := range patterns {
		prefix, open := strings.CutSuffix(p, "*")
		n := len(names)
		for _, name := range events.Names() {
			if name == p || open && strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
		if len(names) == n {
			return nil, usagef("no event is called %.50q; there are: %s", p, strings.Join(events.Names(), ", "))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// exportJob is one export on its way into its files.
type exportJob struct {
	in   *invocation
	s    *session
	from projections.Reader
	key  *secrets.SigningKey
	out  string
}

// run writes the file and its manifest, says so in the log, and only then puts both in
// their places.
func (j exportJob) run(ctx context.Context, head events.ExportHead) (exportView, error) {
	files, err := newExportFiles(j.out)
	if err != nil {
		return exportView{}, err
	}
	defer files.discard()
	head, err = j.head(ctx, head)
	if err != nil {
		return exportView{}, err
	}
	x, err := events.NewExporter(head, files.data.out, files.manifest.out)
	if err != nil {
		return exportView{}, err
	}
	p := j.in.progress("positions")
	defer p.end()
	p.phase("export", 0)
	if err := j.from.Export(ctx, head, x, p.add); err != nil {
		return exportView{}, err
	}
	tail, err := x.Close(filepath.Base(j.out), j.signer())
	if err != nil {
		return exportView{}, err
	}
	if err := files.sync(); err != nil {
		return exportView{}, err
	}
	if err := j.s.Note(ctx, tenantOf(head), j.s.by.Actor, made(head, tail)); err != nil {
		return exportView{}, err
	}
	if err := files.publish(); err != nil {
		return exportView{}, err
	}
	return exportView{j.out, manifestOf(j.out), tail.Count, tail.Bytes, tail.SHA256, tail.First, tail.Last, j.key != nil}, nil
}

// signer is the key, or no signer at all: a nil pointer in an interface would look like one.
func (j exportJob) signer() note.Signer {
	if j.key == nil {
		return nil
	}
	return j.key
}

// head completes what an export is of with the sealed log of now.
func (j exportJob) head(ctx context.Context, head events.ExportHead) (events.ExportHead, error) {
	c, err := j.s.Checkpoint(ctx)
	if err != nil {
		return head, err
	}
	head.Format, head.Ledger, head.Epoch = events.ExportFormat, c.Ledger, c.Epoch
	head.Size, head.Root, head.Last = c.Size, c.Root, c.Last
	if j.key != nil {
		signed, err := c.Sign(j.key)
		if err != nil {
			return head, err
		}
		head.Checkpoint = string(signed)
	}
	if head.Month == "" {
		if head.Archived, err = j.s.ArchivedMonths(ctx); err != nil {
			return head, err
		}
		j.warn(ctx, head)
	}
	return head, nil
}

// warn says what a reader might miss in the file.
func (j exportJob) warn(ctx context.Context, head events.ExportHead) {
	if n := len(head.Archived); n > 0 {
		_, _ = fmt.Fprintf(j.in.err, "deliveries of archived months are in their archives' files, not here: %s\n", strings.Join(head.Archived, ", "))
	}
	if h, err := j.s.Head(ctx); err == nil && h.SealedAt.Before(head.Until.Time) {
		_, _ = fmt.Fprintf(j.in.err, "the log is sealed up to position %d; what came later is not here\n", head.Last)
	}
}

// tenantOf is in whose administrative stream an export is told of.
func tenantOf(head events.ExportHead) string {
	if head.Tenant == "" {
		return domain.SystemTenant
	}
	return head.Tenant
}

func made(head events.ExportHead, tail events.ExportTail) domain.ExportMade {
	return domain.ExportMade{Format: string(head.Encoding), Since: head.Since, Until: head.Until, Names: head.Names,
		AllTenants: head.Tenant == "", Month: head.Month, Count: tail.Count, SHA256: tail.SHA256[:], File: tail.File}
}
