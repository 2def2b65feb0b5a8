package postgrestest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/url"

	"github.com/jackc/pgx/v5"
)

// The roles of every test database.
const (
	ownerRole = "waybill_test_owner" // applies the migrations and owns what they make
	appRole   = "waybill_test_app"   // may do what the migrations grant it
)

// ensureRole makes a role that can do nothing but log in, with the password that
// every process computes.
func ensureRole(ctx context.Context, conn *pgx.Conn, server, role string) error {
	var there bool
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`, role).Scan(&there)
	if err != nil {
		return err
	}
	verb := "CREATE"
	if there {
		verb = "ALTER"
	}
	statement := verb + ` ROLE %s LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS PASSWORD '` + passwordOf(server, role) + `'`
	return run(ctx, conn, statement, role)
}

// passwordOf derives a test role's password from the superuser's, so that processes
// need not tell each other and the roles are no hole in a server that stays.
func passwordOf(server, role string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	secret, _ := u.User.Password()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(role))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
