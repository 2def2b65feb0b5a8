package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// room is a part of the tree and what of ours its product files may import.
type room struct {
	dir     string   // and whatever is below; a trailing * stands for each folder by itself
	imports []string // rooms
	modules []string // of others; nil: any
}

// rooms is the table of style.md, imports going down only.
var rooms = []room{
	{"domain", nil, []string{"github.com/google/uuid"}},
	{"events", []string{"domain"}, nil},
	{"projections", []string{"domain", "events"}, nil},
	{"migrations", nil, []string{}},
	{"handlers/*", []string{"domain", "events", "projections", "handlers/command"}, nil},
	{"adapters/*", []string{"domain", "events", "projections", "migrations"}, nil},
	{"cmd/*", []string{"domain", "events", "projections", "migrations", "handlers", "adapters"}, nil},
}

// impure is what the domain must not reach: a clock, I/O, randomness.
var impure = []string{"context", "crypto/rand", "database/", "io", "log", "math/rand", "net", "os", "sync", "syscall"}

// topLevel is every name that the tree may have at its top, beside dot-files.
var topLevel = []string{
	"README.md", "adapters", "cmd", "domain", "events", "go.mod", "go.sum", "handlers", "migrations", "projections",
}

const (
	maxFile = 300 // lines of a product file
	maxFunc = 60  // lines of a function
)

// TestArchitecture holds the whole tree to its rules.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	root := os.DirFS(moduleRoot(t))
	found := slices.Concat(checkGo(t, root), checkSQL(t, root), checkTop(t, root))
	for _, f := range found {
		t.Error(f)
	}
}

// TestArchitectureCanFail breaks each rule once, on a tree of its own, so that the
// test above is known to be able to fail.
func TestArchitectureCanFail(t *testing.T) {
	t.Parallel()
	const doc = "// Package x is documented.\npackage x\n"
	for name, c := range map[string]struct{ path, text, want string }{
		"domain takes ours":     {"domain/x.go", doc + `import _ "waybill/events"`, "must not import waybill/events"},
		"domain takes others'":  {"domain/x.go", doc + `import _ "github.com/jackc/pgx/v5"`, "must not import github.com/jackc/pgx/v5"},
		"domain does I/O":       {"domain/x.go", doc + `import _ "os"`, "must not import os"},
		"domain reads a clock":  {"domain/x.go", doc + "import \"time\"\nvar a = time.Now()", "reads a clock"},
		"events go up":          {"events/x.go", doc + `import _ "waybill/projections"`, "must not import waybill/projections"},
		"handler takes adapter": {"handlers/api/x.go", doc + `import _ "waybill/adapters/postgres"`, "must not import waybill/adapters/postgres"},
		"handler takes another": {"handlers/api/x.go", doc + `import _ "waybill/handlers/worker"`, "must not import waybill/handlers/worker"},
		"command takes handler": {"handlers/command/x.go", doc + `import _ "waybill/handlers/api"`, "must not import waybill/handlers/api"},
		"adapter takes another": {"adapters/webhook/x.go", doc + `import _ "waybill/adapters/postgres"`, "must not import waybill/adapters/postgres"},
		"adapter takes handler": {"adapters/webhook/x.go", doc + `import _ "waybill/handlers/command"`, "must not import waybill/handlers/command"},
		"a room of its own":     {"tools/x.go", doc, "is in no room"},
		"product tests":         {"events/x.go", doc + `import _ "testing/iotest"`, "must not import testing/iotest"},
		"product containers":    {"events/x.go", doc + `import _ "github.com/testcontainers/testcontainers-go"`, "must not import github.com/testcontainers"},
		"product takes tests'":  {"cmd/waybill/x.go", doc + `import _ "waybill/adapters/postgres/postgrestest"`, "must not import waybill/adapters/postgres/postgrestest"},
		"a test that skips":     {"events/x_test.go", doc + "func TestX(t T) { t.Skip() }", "skips"},
		"no package comment":    {"events/x.go", "package events", "has no package comment"},
		"no comment on a func":  {"events/x.go", doc + "func Exported() {}", "Exported has no comment"},
		"no comment on a type":  {"events/x.go", doc + "type Exported int", "Exported has no comment"},
		"none on a method":      {"events/x.go", doc + "type t int\n// T is.\ntype T struct{}\nfunc (T) Do() {}", "Do has no comment"},
		"none on a constant":    {"events/x.go", doc + "const Exported = 1", "Exported has no comment"},
		"a long file":           {"events/x.go", doc + strings.Repeat("\n", maxFile), "lines, at most 300"},
		"a long function":       {"events/x_test.go", doc + "func f() {" + strings.Repeat("\n", maxFunc) + "}", "f has 61 lines"},
		"SQL without promise":   {"events/sql/x.sql", "select 1", "opens with no comment"},
		"SQL with a star":       {"events/sql/x.sql", "-- all of it\nselect * from waybill.events", "select *"},
		"a name at the top":     {"util/README", "", "util is not a name for the top"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := fstest.MapFS{c.path: {Data: []byte(c.text)}}
			found := slices.Concat(checkGo(t, tree), checkSQL(t, tree), checkTop(t, tree))
			if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, c.want) }) {
				t.Errorf("found %q, not that %s", found, c.want)
			}
		})
	}
}

// TestArchitectureAllows is the other side: what the rules must let pass.
func TestArchitectureAllows(t *testing.T) {
	t.Parallel()
	const doc = "// Package x is documented.\npackage x\n"
	tree := fstest.MapFS{
		"domain/x.go":      {Data: []byte(doc + "import _ \"strings\"\nimport _ \"github.com/google/uuid\"")},
		"domain/x_test.go": {Data: []byte("package x_test\nimport _ \"waybill/adapters/postgres\"\nimport _ \"testing\"")},
		"handlers/api/x.go": {Data: []byte(doc + "import _ \"waybill/handlers/command\"\nimport _ \"waybill/handlers/api/part\"\n" +
			"// These are explained together.\nconst (\n\tA = 1\n\tB = 2\n)")},
		"adapters/postgres/pgtest/x.go": {Data: []byte(doc + "import _ \"waybill/adapters/embedded\"\nimport _ \"testing\"")},
		"adapters/postgres/sql/x.sql": {Data: []byte("-- Promises.\nwith u as (select * from unnest(@a::int[])),\n" +
			"v (n) as (select 1)\nselect * from u union select * from v")},
		".github/x": {}, "go.mod": {},
	}
	for _, f := range slices.Concat(checkGo(t, tree), checkSQL(t, tree), checkTop(t, tree)) {
		t.Error(f)
	}
}

// moduleRoot is the folder of go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above")
	return ""
}

// checkTop finds names at the top of the tree that have no place there. What git
// ignores may lie around.
func checkTop(t *testing.T, tree fs.FS) (found []string) {
	t.Helper()
	entries, err := fs.ReadDir(tree, ".")
	if err != nil {
		t.Fatal(err)
	}
	ignored, _ := fs.ReadFile(tree, ".gitignore") // there need not be one
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, ".") && !slices.Contains(topLevel, name) && !matchesAny(strings.Fields(string(ignored)), name) {
			found = append(found, name+" is not a name for the top of the tree")
		}
	}
	return found
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(strings.TrimPrefix(p, "/"), name)
		return ok
	})
}
