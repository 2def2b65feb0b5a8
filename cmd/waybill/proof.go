package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/tlog"

	"waybill/domain"
	"waybill/events"
)

// checkpointCmd states how far the log is sealed.
type checkpointCmd struct {
	SigningKey string `required:"" placeholder:"F" help:"The key that signs it."`
	Out        string `placeholder:"F" help:"Write it to this file instead."`
}

// Run prints or writes the checkpoint of now.
func (c *checkpointCmd) Run(ctx context.Context, in *invocation) error {
	key, err := signing{SigningKey: c.SigningKey}.key()
	if err != nil {
		return err
	}
	return in.withLedger(ctx, func(s *session) error {
		now, err := s.Checkpoint(ctx)
		if err != nil {
			return err
		}
		signed, err := now.Sign(key)
		if err != nil {
			return err
		}
		return write(in, c.Out, signed)
	})
}

// proofCmd proves, and checks proofs.
type proofCmd struct {
	Make        proofMakeCmd        `cmd:"" default:"withargs" help:"Prove that an event is in the log, under a checkpoint of now."`
	Consistency proofConsistencyCmd `cmd:"" help:"Prove that the log of now extends that of an earlier checkpoint."`
	Check       proofCheckCmd       `cmd:"" help:"Check a proof; needs no database."`
}

type proofMakeCmd struct {
	SigningKey string   `required:"" placeholder:"F" help:"The key that signs the checkpoint."`
	Delivery   identity `xor:"stream" placeholder:"ID" help:"Of an event of this delivery."`
	Endpoint   identity `xor:"stream" placeholder:"ID" help:"Of an event of this endpoint."`
	Seq        int      `required:"" placeholder:"N" help:"Which event."`
	Out        string   `placeholder:"F" help:"Write it to this file instead."`
}

// Run writes the proof.
func (c *proofMakeCmd) Run(ctx context.Context, in *invocation) error {
	kind, id := events.DeliveryStream, c.Delivery.UUID
	if c.Endpoint.UUID != uuid.Nil {
		kind, id = events.EndpointStream, c.Endpoint.UUID
	}
	if id == uuid.Nil || c.Seq < 1 {
		return usageError("name the event: --delivery ID or --endpoint ID, and --seq N from 1")
	}
	key, err := signing{SigningKey: c.SigningKey}.key()
	if err != nil {
		return err
	}
	return in.withTenant(ctx, func(s *session) error {
		list, err := s.Stream(ctx, in.Tenant, kind, id, c.Seq-1, 1)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return domain.ErrNotSealed.With(fmt.Sprintf("tenant %s has no event with seq %d of %s %s", in.Tenant, c.Seq, kind, id))
		}
		p, err := s.Prove(ctx, in.Tenant, list[0].Position, key)
		if err != nil {
			return err
		}
		return writeJSON(in, c.Out, p)
	})
}

type proofConsistencyCmd struct {
	SigningKey string `required:"" placeholder:"F" help:"The key that both checkpoints are signed with."`
	From       string `arg:"" placeholder:"F" help:"The file of the earlier checkpoint."`
	Out        string `placeholder:"F" help:"Write it to this file instead."`
}

// Run writes the proof.
func (c *proofConsistencyCmd) Run(ctx context.Context, in *invocation) error {
	key, err := signing{SigningKey: c.SigningKey}.key()
	if err != nil {
		return err
	}
	earlier, err := readBounded(c.From)
	if err != nil {
		return err
	}
	from, err := events.OpenCheckpoint(earlier, key.Verifier)
	if err != nil {
		return err
	}
	return in.withLedger(ctx, func(s *session) error {
		to, err := s.Checkpoint(ctx)
		if err != nil {
			return err
		}
		if from.Size < 1 || from.Size > to.Size {
			return domain.ErrNoCheckpoint.With(fmt.Sprintf("the checkpoint is of %d blocks, the log has %d", from.Size, to.Size))
		}
		path, err := s.Consistent(ctx, from.Size, to.Size)
		if err != nil {
			return err
		}
		signed, err := to.Sign(key)
		if err != nil {
			return err
		}
		return writeJSON(in, c.Out, events.Consistency{Format: events.ConsistencyFormat, From: string(earlier), To: string(signed), Path: path})
	})
}

type proofCheckCmd struct {
	File string `arg:"" placeholder:"F" help:"The proof's file."`
	Key  string `required:"" placeholder:"K" help:"The verifier key, NAME+HASH+KEY, from somebody you trust."`
}

// errUnproven is what a check ends with that failed.
var errUnproven = errors.New("NOT PROVEN")

// Run checks the proof and says what it shows.
func (c *proofCheckCmd) Run(_ context.Context, in *invocation) error {
	content, err := readBounded(c.File)
	if err != nil {
		return err
	}
	var kind struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(content, &kind); err != nil {
		return fmt.Errorf("%w: %s is not JSON: %w", errUnproven, c.File, err)
	}
	switch kind.Format {
	case events.ProofFormat:
		return c.event(in, content)
	case events.ConsistencyFormat:
		return c.growth(in, content)
	}
	return fmt.Errorf("%w: %s is of a format that this program does not know: %q", errUnproven, c.File, kind.Format)
}

func (c *proofCheckCmd) event(in *invocation, content []byte) error {
	var p events.Proof
	if err := json.Unmarshal(content, &p); err != nil {
		return fmt.Errorf("%w: %w", errUnproven, err)
	}
	at, err := p.Check(c.Key)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnproven, err)
	}
	e := p.Event
	return show(in, map[string]any{"proven": true, "event": e, "block": p.Block.Number, "checkpoint": statement(at)},
		[2]string{"proven", "this event is in the log that the checkpoint speaks of, as it stands here"},
		[2]string{"event", fmt.Sprintf("%s, seq %d of %s %s", e.Name, e.Seq, e.Stream, e.StreamID)},
		[2]string{"recorded at", e.RecordedAt.String()}, [2]string{"actor", string(e.Actor)},
		[2]string{"data", string(e.Data)}, [2]string{"position", itoa(int(e.Position))},
		[2]string{"block", itoa(int(p.Block.Number))}, [2]string{"checkpoint", sentence(at)})
}

func (c *proofCheckCmd) growth(in *invocation, content []byte) error {
	var p events.Consistency
	if err := json.Unmarshal(content, &p); err != nil {
		return fmt.Errorf("%w: %w", errUnproven, err)
	}
	from, to, err := p.Check(c.Key)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnproven, err)
	}
	return show(in, map[string]any{"proven": true, "from": statement(from), "to": statement(to)},
		[2]string{"proven", "the later log is the earlier one with blocks added: nothing was changed or left out"},
		[2]string{"earlier", sentence(from)}, [2]string{"later", sentence(to)})
}

func statement(c events.Checkpoint) map[string]any {
	return map[string]any{"origin": c.Origin, "ledger": c.Ledger, "epoch": c.Epoch, "size": c.Size, "root": c.Root, "last": c.Last}
}

func sentence(c events.Checkpoint) string {
	return fmt.Sprintf("signed by %s: ledger %s, epoch %d, %d blocks up to position %d, root %s", c.Origin, c.Ledger, c.Epoch, c.Size, c.Last, tlog.Hash(c.Root))
}

// checkSignerName refuses names that a note cannot carry.
func checkSignerName(name string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r == '+' || unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return usageError("--name has no spaces and no plus")
	}
	return nil
}

// maxProof bounds a file that somebody else made, in bytes.
const maxProof = 64 << 20

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxProof))
}

func writeJSON(in *invocation, path string, v any) error {
	content, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return write(in, path, append(content, '\n'))
}

// write prints, or makes or replaces a file.
func write(in *invocation, path string, content []byte) error {
	if path != "" {
		return os.WriteFile(path, content, 0o644)
	}
	_, err := in.out.Write(content)
	return err
}
