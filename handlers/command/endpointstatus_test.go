package command_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// TestRotationOverlaps is case 28: the overlap counts from the last rotation for the
// secret that it replaces, and older ones keep their own end.
func TestRotationOverlaps(t *testing.T) {
	t.Parallel()
	c := configure(t)
	p, first := c.create(command.EndpointInput{URL: "https://example.com/0"})
	rotate := func(overlap time.Duration) string {
		t.Helper()
		_, secret, err := c.RotateSecret(t.Context(), admin, p.ID, overlap, 0)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	before := time.Now()
	second := rotate(time.Hour)
	third := rotate(48 * time.Hour)
	got := c.target(p.ID)
	if len(got.Secrets) != 3 || got.Secrets[0].Secret != third || got.Secrets[1].Secret != second || got.Secrets[2].Secret != first {
		t.Fatalf("secrets %+v", got.Secrets)
	}
	for i, want := range []time.Duration{48 * time.Hour, time.Hour} {
		if off := got.Secrets[i+1].NotAfter.Sub(before) - want; off < -time.Minute || off > time.Minute {
			t.Errorf("secret %d ends %v off", i+1, off)
		}
	}
	if !got.Secrets[0].NotAfter.IsZero() {
		t.Error("the present secret has an end")
	}
	fourth := rotate(0)
	if now := c.target(p.ID).SigningAt(time.Now()); now[0] != fourth || slices.Contains(now, third) {
		t.Error("a secret signs on after an overlap of nothing")
	}
	for _, bad := range []time.Duration{-time.Second, 8 * 24 * time.Hour} {
		if _, _, err := c.RotateSecret(t.Context(), admin, p.ID, bad, 0); !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestStatusOfAnEndpoint(t *testing.T) {
	t.Parallel()
	c := configure(t)
	p, _ := c.create(command.EndpointInput{URL: "https://example.com/0"})
	ctx := t.Context()
	for i, step := range []struct {
		do      func() (projections.Endpoint, error)
		status  domain.EndpointStatus
		version int
	}{
		{func() (projections.Endpoint, error) { return c.Pause(ctx, admin, p.ID, 1) }, domain.StatusPaused, 2},
		{func() (projections.Endpoint, error) { return c.Pause(ctx, admin, p.ID, 0) }, domain.StatusPaused, 2},
		{func() (projections.Endpoint, error) { return c.Resume(ctx, admin, p.ID, 0) }, domain.StatusActive, 3},
		{func() (projections.Endpoint, error) { return c.Archive(ctx, admin, p.ID, 0) }, domain.StatusArchived, 4},
		{func() (projections.Endpoint, error) { return c.Archive(ctx, admin, p.ID, 0) }, domain.StatusArchived, 4},
	} {
		after, err := step.do()
		if err != nil || after.Status != step.status || after.Version != step.version {
			t.Fatalf("step %d: %s, version %d: %v", i, after.Status, after.Version, err)
		}
	}
	for name, change := range map[string]func() error{
		"resume": func() error { _, err := c.Resume(ctx, admin, p.ID, 0); return err },
		"rotate": func() error { _, _, err := c.RotateSecret(ctx, admin, p.ID, 0, 0); return err },
		"update": func() error {
			_, _, err := c.Update(ctx, admin, p.ID, json.RawMessage(`{"description":"x"}`), 0)
			return err
		},
	} {
		if err := change(); !errors.Is(err, domain.ErrEndpointArchived) {
			t.Errorf("%s of an archived endpoint: %v", name, err)
		}
	}
	stranger := admin
	stranger.Tenant = "other"
	if _, err := c.Pause(ctx, stranger, p.ID, 0); !errors.Is(err, domain.ErrEndpointNotFound) {
		t.Errorf("another tenant's: %v", err)
	}
}
