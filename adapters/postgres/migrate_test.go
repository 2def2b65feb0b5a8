package postgres_test

import (
	"errors"
	"testing"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/domain"
)

// TestMigrateFromManyPlaces: eight at once, on a fresh database and again on a migrated
// one, all succeed. It fails without the lock around the grants.
func TestMigrateFromManyPlaces(t *testing.T) {
	t.Parallel()
	db := postgrestest.Empty(t)
	for range 2 {
		done := make(chan error, 8)
		for range cap(done) {
			go func() {
				done <- postgres.Migrate(t.Context(), db.OwnerURL, postgres.MigrateOptions{AppRole: "waybill_test_app", OutboxRole: "waybill_test_app"})
			}()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	if err := postgres.Open(db.App, postgres.Config{}).CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOwnerIsNoApplicationRole: the separation of roles would be void.
func TestOwnerIsNoApplicationRole(t *testing.T) {
	t.Parallel()
	db := postgrestest.Empty(t)
	err := postgres.Migrate(t.Context(), db.OwnerURL, postgres.MigrateOptions{AppRole: "waybill_test_owner"})
	if !errors.Is(err, domain.ErrInvalidRequest) {
		t.Error(err)
	}
}
