package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"waybill/adapters/embedded"
	"waybill/adapters/postgres"
	"waybill/adapters/secrets"
	"waybill/projections"
)

// placeVariable names a server for dev and demo to use in place of an embedded one.
// It is not WAYBILL_DATABASE_URL on purpose: whoever has that set for production
// must be able to type `waybill demo` without a second thought.
const placeVariable = "WAYBILL_DEV_DATABASE_URL"

// tidyPatience bounds each step of putting a place away.
const tidyPatience = 15 * time.Second

// placeConfig says what kind of place to make.
type placeConfig struct {
	Schema projections.Schema
	Name   string          // of the roles, before _owner and _app
	Server embedded.Config // an empty DataDir is a temporary one
	Own    bool            // on a named server: a database and roles that go with the place
	Vault  *secrets.Vault  // nil: a keyset in the place's directory, made where there is none
}

// place is a database with everything that a node needs and that production has
// set up by hand: an owner who migrates, a role for the product that may do no more
// than the migrations grant it, and a keyset.
type place struct {
	placeConfig
	Source     string // for people: where the database came from
	URL        string // as the product's role
	KeysetFile string // empty if the keyset was given
	admin      string // the URL that the roles are made with
	home       string
	passing    bool // nothing of it stays
	undo       []func() error
}

// openPlace makes the place or opens the one that is there.
func openPlace(ctx context.Context, c placeConfig) (*place, error) {
	p := &place{placeConfig: c}
	if err := p.open(ctx); err != nil {
		if ctx.Err() != nil { // whatever failed, that is why
			err = context.Cause(ctx)
		}
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close puts the place away: what is temporary is gone afterwards.
func (p *place) Close() error {
	var errs []error
	for _, undo := range slices.Backward(p.undo) {
		errs = append(errs, undo())
	}
	p.undo = nil
	return errors.Join(errs...)
}

func (p *place) later(undo func() error) { p.undo = append(p.undo, undo) }

func (p *place) open(ctx context.Context) error {
	found, err := embedded.Resolve(ctx, embedded.ResolveConfig{Variable: placeVariable, Server: p.Server})
	if err != nil {
		return err
	}
	p.later(found.Stop)
	p.Source, p.admin = found.Source, found.URL
	p.passing = p.Own || found.Server != nil && p.Server.DataDir == ""
	if err := p.makeHome(found.Server); err != nil {
		return err
	}
	if p.Own && found.Server == nil {
		if err := p.setApart(ctx); err != nil {
			return err
		}
	}
	owner, app, err := p.makeRoles(ctx)
	if err != nil {
		return err
	}
	if err := postgres.Migrate(ctx, owner, postgres.MigrateOptions{Schema: p.Schema, AppRole: p.Name + "_app"}); err != nil {
		return err
	}
	p.URL = app
	return p.takeKeyset()
}

// makeHome finds the directory for the keyset: the embedded server's, the one that
// was asked for, or a temporary one.
func (p *place) makeHome(s *embedded.Server) (err error) {
	switch {
	case s != nil:
		p.home = s.DataDir()
	case p.Server.DataDir != "":
		p.home = p.Server.DataDir
		return os.MkdirAll(p.home, 0o700)
	case p.Vault != nil:
	case !p.Own:
		return usagef("what is stored on the server that %s names stays, so its keyset must: give --data-dir or --keyset-file", placeVariable)
	default:
		if p.home, err = os.MkdirTemp("", "waybill-"); err == nil {
			p.later(func() error { return os.RemoveAll(p.home) })
		}
	}
	return err
}

func (p *place) takeKeyset() (err error) {
	if p.Vault != nil {
		return nil
	}
	p.KeysetFile = filepath.Join(p.home, "keyset.json")
	p.Vault, err = secrets.LoadOrCreate(p.KeysetFile)
	return err
}
