package projections

import (
	"fmt"
	"regexp"
	"strings"
)

// Schema is the database schema that a ledger lives in.
type Schema string

// DefaultSchema is where a ledger lives unless told otherwise; it is the name that
// every SQL file is written with.
const DefaultSchema Schema = "waybill"

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Check refuses names that would need quoting.
func (s Schema) Check() error {
	if !schemaName.MatchString(string(s)) {
		return fmt.Errorf("schema %q: a name has a–z, 0–9 and _, at most 63, and starts with no digit", string(s))
	}
	return nil
}

// SQL returns a statement written for the default schema as it reads in this one.
func (s Schema) SQL(text string) string {
	if s == "" || s == DefaultSchema {
		return text
	}
	return strings.NewReplacer(
		string(DefaultSchema)+".", string(s)+".",
		"schema "+string(DefaultSchema)+" ", "schema "+string(s)+" ",
	).Replace(text)
}
