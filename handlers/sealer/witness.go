package sealer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/mod/sumdb/note"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// witnessPause is how often the checkpoint outside the database follows the log.
const witnessPause = time.Second

// Keeper keeps a checkpoint outside the database.
type Keeper interface {
	Load() ([]byte, error) // nil: none was kept yet
	Save(checkpoint []byte) error
	SetAside(suffix string) error
}

// Sealed is what a Witness needs of the log.
type Sealed interface {
	Head(ctx context.Context) (projections.Head, error)
	Checkpoint(ctx context.Context) (events.Checkpoint, error)
	Consistent(ctx context.Context, from, to int64) ([]events.Hash, error)
	AcceptRestore(ctx context.Context, by domain.Actor, reason string, lost events.Checkpoint) error
}

// Witness holds the log against the last checkpoint that was kept outside the database:
// the log must extend it. A database that was put back to an older state does not, and
// nothing is sent or sealed on it until a person accepts that.
type Witness struct {
	Ledger   Sealed
	Keeper   Keeper
	Signer   note.Signer
	Verifier string // the signer's verifier key
	Log      *slog.Logger

	kept events.Checkpoint
}

// Check refuses a log that does not extend the checkpoint kept outside.
func (w *Witness) Check(ctx context.Context) error {
	_, err := w.check(ctx)
	return err
}

// check returns the checkpoint of now where it extends the one that was kept.
func (w *Witness) check(ctx context.Context) (now events.Checkpoint, err error) {
	signed, err := w.Keeper.Load()
	if err != nil {
		return now, err
	}
	var kept events.Checkpoint
	if signed != nil {
		if kept, err = events.OpenCheckpoint(signed, w.Verifier); err != nil {
			return now, domain.ErrCheckpointForeign.With("the checkpoint file cannot be trusted: " + err.Error())
		}
	}
	if now, err = w.Ledger.Checkpoint(ctx); err != nil {
		return now, err
	}
	if signed == nil {
		return now, nil
	}
	w.kept = kept
	return now, w.extends(ctx, kept, now)
}

func (w *Witness) extends(ctx context.Context, kept, now events.Checkpoint) error {
	switch {
	case kept.Ledger != now.Ledger:
		return domain.ErrCheckpointForeign.With(fmt.Sprintf("the checkpoint file is of ledger %s, this is %s", kept.Ledger, now.Ledger))
	case kept.Epoch < now.Epoch: // accepted, by whoever said so to another process
		w.Log.Warn("an older state of the ledger was accepted since the checkpoint was kept; it is set aside",
			"kept_epoch", kept.Epoch, "epoch", now.Epoch, "kept_position", kept.Last)
		return w.Keeper.SetAside(fmt.Sprintf(".epoch-%d", kept.Epoch))
	case kept.Epoch > now.Epoch, kept.Size > now.Size:
		return domain.ErrRestored.With(fmt.Sprintf("the database is in an older state than the checkpoint file: "+
			"it is sealed up to position %d, the file up to %d. What came after is lost to it, and receivers may have it. "+
			"If that is how it must be: serve --accept-restore REASON", now.Last, kept.Last))
	case kept.Size == 0:
		return nil
	}
	path, err := w.Ledger.Consistent(ctx, kept.Size, now.Size)
	if err != nil {
		return err
	}
	if err := events.CheckConsistency(path, kept, now); err != nil {
		return domain.ErrRestored.With(fmt.Sprintf("the log does not extend the checkpoint file, which ends at position %d: "+
			"history was changed, or an older state was restored and written on. If that is how it must be: "+
			"serve --accept-restore REASON", kept.Last))
	}
	return nil
}

// Accept takes the log as it is although it does not extend the checkpoint kept outside:
// a new epoch begins beyond that one's last position, and the log says who accepted what.
// If the log does extend it there is nothing to accept, and nothing happens.
func (w *Witness) Accept(ctx context.Context, by domain.Actor, reason string) error {
	err := w.Check(ctx)
	if !isRestored(err) {
		return err
	}
	w.Log.Warn("an older state of the ledger is accepted", "kept_position", w.kept.Last, "reason", reason)
	return w.Ledger.AcceptRestore(ctx, by, reason, w.kept)
}

// Run keeps the checkpoint up to date until ctx ends, or until the log does not extend it
// any more: that is the error.
func (w *Witness) Run(ctx context.Context) error {
	for {
		err := w.Keep(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case isRestored(err):
			return err
		case err != nil:
			w.Log.Error("the checkpoint outside the database could not be kept", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(witnessPause):
		}
	}
}

// Keep checks the log once and keeps its checkpoint if it has grown.
func (w *Witness) Keep(ctx context.Context) error {
	head, err := w.Ledger.Head(ctx)
	if err != nil {
		return err
	}
	if head.Blocks == w.kept.Size && head.Epoch == w.kept.Epoch && head.Ledger == w.kept.Ledger {
		return nil
	}
	now, err := w.check(ctx)
	if err != nil {
		return err
	}
	signed, err := now.Sign(w.Signer)
	if err == nil {
		err = w.Keeper.Save(signed)
	}
	if err == nil {
		w.kept = now
	}
	return err
}

func isRestored(err error) bool { return errors.Is(err, domain.ErrRestored) }
