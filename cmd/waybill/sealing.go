package main

import (
	"context"

	"waybill/adapters/witness"
	"waybill/handlers/sealer"
)

// sealer closes blocks; every node does, whoever is first.
func (n *node) sealer() *sealer.Sealer {
	return sealer.New(sealer.Config{Ledger: n.ledger, Log: n.config.Log, Sealed: n.metrics.sealed, Waiting: n.metrics.heldBack})
}

// witness holds the database against the checkpoint that is kept outside it, before
// anything is sent or sealed.
func (n *node) witness(ctx context.Context) error {
	c := n.config
	if c.CheckpointFile == "" || c.Signing == nil {
		return nil
	}
	n.kept = &sealer.Witness{Ledger: n.ledger, Keeper: witness.File{Path: c.CheckpointFile},
		Signer: c.Signing, Verifier: c.Signing.Verifier, Log: c.Log}
	if c.AcceptRestore == "" {
		return n.kept.Check(ctx)
	}
	if err := n.kept.Accept(ctx, operator(), c.AcceptRestore); err != nil {
		return err
	}
	return n.kept.Check(ctx)
}

// keepCheckpoint keeps it up to date. A log that does not extend it any more ends the node.
func (n *node) keepCheckpoint(ctx context.Context) {
	if err := n.kept.Run(ctx); err != nil {
		n.failed <- err
	}
}
