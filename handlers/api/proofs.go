package api

import (
	"context"
	"fmt"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/mod/sumdb/note"

	"waybill/domain"
	"waybill/events"
)

// Prover makes what can be checked without the database.
type Prover interface {
	Checkpoint(ctx context.Context) (events.Checkpoint, error)
	Prove(ctx context.Context, tenant string, position int64, signer note.Signer) (events.Proof, error)
	Consistent(ctx context.Context, from, to int64) ([]events.Hash, error)
}

type checkpointOutput struct{ Body checkpoint }

// checkpoint is a signed statement with what it says laid out.
type checkpoint struct {
	Note        string      `json:"checkpoint" doc:"the signed note; this, as it is, is what proofs are checked under"`
	VerifierKey string      `json:"verifier_key" doc:"of the signer; take it from somebody you trust rather than from here"`
	Size        int64       `json:"size" doc:"how many blocks"`
	Root        events.Hash `json:"root" doc:"of the tree of blocks, in hex"`
	Last        int64       `json:"last" doc:"the horizon: the position that the last block ends with"`
	Epoch       int         `json:"epoch"`
	Ledger      string      `json:"ledger" format:"uuid"`
}

type proofInput struct {
	Position int64 `path:"position" minimum:"1" doc:"the event's"`
}

type proofOutput struct{ Body events.Proof }

type consistencyInput struct {
	From int64 `query:"from" minimum:"1" required:"true" doc:"size of the earlier checkpoint"`
	To   int64 `query:"to" minimum:"0" doc:"size of the later one; left out: of now"`
}

type consistencyOutput struct{ Body consistency }

type consistency struct {
	From       int64         `json:"from"`
	To         int64         `json:"to"`
	Path       []events.Hash `json:"path" doc:"RFC 6962, section 2.1.2"`
	Checkpoint string        `json:"checkpoint" doc:"signed, of now"`
}

// proofs registers what shows an outsider that nothing was changed.
func (s *server) proofs(api huma.API) {
	register(s, api, operation{
		id: "get-checkpoint", tag: "proofs", call: "GET /v1/checkpoint", scope: domain.ScopeAudit,
		summary: "State, signed, how far the log is sealed and what its root is", refuses: []*domain.Error{domain.ErrNotSigning},
	}, s.getCheckpoint)
	register(s, api, operation{
		id: "get-proof", tag: "proofs", call: "GET /v1/events/{position}/proof", scope: domain.ScopeAudit,
		summary: "Prove that an event is in the log, under a checkpoint of now", about: "Check it with: waybill proof check FILE --key KEY.",
		refuses: []*domain.Error{domain.ErrNotSealed, domain.ErrNotSigning},
	}, s.getProof)
	register(s, api, operation{
		id: "get-consistency", tag: "proofs", call: "GET /v1/checkpoint/consistency", scope: domain.ScopeAudit,
		summary: "Prove that a later log extends an earlier one", refuses: []*domain.Error{domain.ErrNoCheckpoint, domain.ErrNotSigning},
	}, s.getConsistency)
}

func (s *server) getCheckpoint(ctx context.Context, _ *struct{}) (*checkpointOutput, error) {
	c, signed, err := s.sign(ctx)
	if err != nil {
		return nil, err
	}
	return &checkpointOutput{checkpoint{Note: signed, VerifierKey: s.Verifier, Size: c.Size, Root: c.Root, Last: c.Last,
		Epoch: c.Epoch, Ledger: c.Ledger.String()}}, nil
}

func (s *server) sign(ctx context.Context) (c events.Checkpoint, signed string, err error) {
	if s.Signer == nil {
		return c, "", domain.ErrNotSigning
	}
	if c, err = s.Proofs.Checkpoint(ctx); err != nil {
		return c, "", err
	}
	b, err := c.Sign(s.Signer)
	return c, string(b), err
}

func (s *server) getProof(ctx context.Context, in *proofInput) (*proofOutput, error) {
	if s.Signer == nil {
		return nil, domain.ErrNotSigning
	}
	p, err := s.Proofs.Prove(ctx, callOf(ctx).by.Tenant, in.Position, s.Signer)
	if err != nil {
		return nil, err
	}
	return &proofOutput{p}, nil
}

func (s *server) getConsistency(ctx context.Context, in *consistencyInput) (*consistencyOutput, error) {
	now, signed, err := s.sign(ctx)
	if err != nil {
		return nil, err
	}
	to := in.To
	if to == 0 {
		to = now.Size
	}
	if in.From > to || to > now.Size {
		return nil, domain.ErrNoCheckpoint.With(fmt.Sprintf("from and to are sizes of checkpoints, from 1 to %d, the earlier one first", now.Size))
	}
	path, err := s.Proofs.Consistent(ctx, in.From, to)
	if err != nil {
		return nil, err
	}
	return &consistencyOutput{consistency{From: in.From, To: to, Path: path, Checkpoint: signed}}, nil
}
