package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// What PostgreSQL answers where a role is there already: before or while another
// process makes it.
const (
	codeDuplicateObject = "42710"
	codeUniqueViolation = "23505"
)

// setApart makes a database on a named server, and names for roles, that nobody else
// there has, and sees to it that they go with the place.
func (p *place) setApart(ctx context.Context) error {
	server := p.admin
	u, err := p.adminURL()
	if err != nil {
		return err
	}
	p.Name += "_" + hex.EncodeToString(random(4))
	if err := execute(ctx, server, "CREATE DATABASE "+quoted(p.Name)+" ENCODING 'UTF8' TEMPLATE template0"); err != nil {
		return err
	}
	p.later(func() error { return p.dropAll(server) })
	u.Path = "/" + p.Name
	p.admin = u.String()
	return nil
}

func (p *place) dropAll(server string) error {
	ctx, cancel := context.WithTimeout(context.Background(), tidyPatience)
	defer cancel()
	return execute(ctx, server,
		"DROP DATABASE IF EXISTS "+quoted(p.Name)+" WITH (FORCE)",
		"DROP ROLE IF EXISTS "+quoted(p.Name+"_app")+", "+quoted(p.Name+"_owner"))
}

func (p *place) adminURL() (*url.URL, error) {
	u, err := url.Parse(p.admin)
	if err != nil || u.Host == "" || len(u.Path) < 2 {
		return nil, usagef("%s is not a URL such as postgres://USER@HOST:PORT/DATABASE", placeVariable)
	}
	return u, nil
}

// makeRoles makes the two roles, or renews their passwords, and returns their URLs.
func (p *place) makeRoles(ctx context.Context) (owner, app string, err error) {
	u, err := p.adminURL()
	if err != nil {
		return "", "", err
	}
	database := u.Path[1:]
	secret := random(32)
	if c, err := pgx.ParseConfig(p.admin); err == nil && c.Password != "" {
		secret = []byte(c.Password)
	}
	var urls [2]string
	for i, role := range []string{p.Name + "_owner", p.Name + "_app"} {
		password := derived(secret, role)
		if err := makeRole(ctx, p.admin, role, password); err != nil {
			return "", "", err
		}
		u.User = url.UserPassword(role, password)
		urls[i] = u.String()
	}
	err = execute(ctx, p.admin, "GRANT CREATE ON DATABASE "+quoted(database)+" TO "+quoted(p.Name+"_owner"))
	return urls[0], urls[1], err
}

// makeRole makes a role that can do nothing but log in, or gives it its password.
func makeRole(ctx context.Context, admin, role, password string) error {
	err := execute(ctx, admin, "CREATE ROLE "+quoted(role)+" LOGIN PASSWORD '"+password+"'")
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == codeDuplicateObject || pg.Code == codeUniqueViolation) {
		err = execute(ctx, admin, "ALTER ROLE "+quoted(role)+" LOGIN PASSWORD '"+password+"'")
	}
	return err
}

// derived is a role's password, the same for as long as the administrator's is, so
// that a second dev on one server does not lock out the first.
func derived(secret []byte, role string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(role))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, says its documentation
	return b
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// execute runs statements on a connection of their own, one after the other.
func execute(ctx context.Context, databaseURL string, statements ...string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("set up the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("set up the database: %w", err)
		}
	}
	return nil
}
