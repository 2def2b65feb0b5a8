package embedded

import (
	"context"
	"errors"
	"strings"
	"testing"
)

const testVariable = "WAYBILL_TEST_RESOLVE_URL"

// closedDoors makes a machine without PostgreSQL.
func closedDoors(t *testing.T) {
	t.Helper()
	t.Setenv(testVariable, "")
	t.Setenv(BinVariable, t.TempDir())
	t.Setenv(MirrorVariable, "http://127.0.0.1:1")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

func TestResolveNamesEveryDoor(t *testing.T) {
	closedDoors(t)
	_, err := Resolve(t.Context(), ResolveConfig{
		Variable: testVariable,
		Doors: []Door{{"docker", func(context.Context) (Found, error) {
			return Found{}, errors.New("no daemon")
		}}},
	})
	if err == nil {
		t.Fatal("found a database")
	}
	for _, want := range []string{
		"url: " + testVariable + ": not set",
		"installed: ", "no initdb beside postgres",
		"docker: no daemon",
		"download: ", "127.0.0.1:1: connect: connection refused",
		"install PostgreSQL 15 or later, or set " + testVariable,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestResolveInstalledThenURL(t *testing.T) {
	t.Setenv(testVariable, "")
	found, err := Resolve(t.Context(), ResolveConfig{Variable: testVariable})
	if err != nil {
		t.Fatal(err)
	}
	defer found.Stop()
	if found.Server == nil || !strings.Contains(found.Source, found.Server.BinDir()) {
		t.Errorf("source %q", found.Source)
	}

	t.Setenv(testVariable, found.URL)
	named, err := Resolve(t.Context(), ResolveConfig{Variable: testVariable})
	if err != nil || named.URL != found.URL || named.Source != "$"+testVariable {
		t.Errorf("through the variable: %+v, %v", named, err)
	}
	if err := errors.Join(named.Stop(), found.Stop()); err != nil {
		t.Error(err)
	}
	_, err = Resolve(t.Context(), ResolveConfig{Variable: testVariable})
	if err == nil || strings.Contains(err.Error(), "installed") {
		t.Errorf("a variable that leads nowhere is the end of it: %v", err)
	}
}

func TestResolveOneDoorOnly(t *testing.T) {
	closedDoors(t)
	mine := Door{"mine", func(context.Context) (Found, error) { return FoundAt("postgres://there", "mine", nil), nil }}
	found, err := Resolve(t.Context(), ResolveConfig{Variable: testVariable, Doors: []Door{mine}})
	if err != nil || found.URL != "postgres://there" || found.Stop() != nil {
		t.Errorf("a caller's door: %+v, %v", found, err)
	}
	for only, want := range map[string]string{
		DoorInstalled: "installed: ",
		"window":      `no door "window"`,
	} {
		_, err := Resolve(t.Context(), ResolveConfig{Variable: testVariable, Doors: []Door{mine}, Only: only})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "url: ") {
			t.Errorf("only %s: %v", only, err)
		}
	}
}
