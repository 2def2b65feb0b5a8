package main

import (
	"context"
	"path/filepath"

	"waybill/adapters/secrets"
)

// signing says who signs checkpoints, and where the last one is kept.
type signing struct {
	SigningKey     string `placeholder:"F" help:"The key that signs checkpoints (mode 0600); waybill keys signing-create makes one."`
	CheckpointFile string `placeholder:"F" help:"Keep the last checkpoint here, outside the database, and refuse a database that was restored to an older state. Needs --signing-key."`
}

func (s signing) check() error {
	if s.CheckpointFile != "" && s.SigningKey == "" {
		return usageError("--checkpoint-file needs the --signing-key that its checkpoints are signed with")
	}
	return nil
}

// key reads the key; nil if none is named.
func (s signing) key() (*secrets.SigningKey, error) {
	if s.SigningKey == "" {
		return nil, nil
	}
	key, err := secrets.ReadSigningKey(s.SigningKey)
	return &key, err
}

// keyIn is key, or that of a place which has a directory: it is made where there is none.
func (s signing) keyIn(p *place) (*secrets.SigningKey, error) {
	if s.SigningKey != "" || p.home == "" {
		return s.key()
	}
	key, err := secrets.ReadOrCreateSigningKey(filepath.Join(p.home, "signing.key"), "waybill-dev")
	return &key, err
}

type signingCreateCmd struct {
	Out  string `required:"" placeholder:"F" help:"A new file for the key (mode 0600)."`
	Name string `default:"waybill" placeholder:"N" help:"The key's name, by which those who check know whose it is, such as ledger.example.com (default ${default}). No spaces, no plus."`
}

// Run makes the key and prints its public half.
func (c *signingCreateCmd) Run(_ context.Context, in *invocation) error {
	if err := checkSignerName(c.Name); err != nil {
		return err
	}
	key, err := secrets.CreateSigningKey(c.Out, c.Name)
	if err != nil {
		return err
	}
	return say(in, signingView{key.Name(), key.Verifier}, key.Verifier)
}

type signingShowCmd struct {
	File string `arg:"" placeholder:"F" help:"The key's file."`
}

// signingView is what may be told of a signing key.
type signingView struct {
	Name     string `json:"name"`
	Verifier string `json:"verifier_key"`
}

// Run prints the public half of a key.
func (c *signingShowCmd) Run(_ context.Context, in *invocation) error {
	key, err := secrets.ReadSigningKey(c.File)
	if err != nil {
		return err
	}
	return say(in, signingView{key.Name(), key.Verifier}, key.Verifier)
}
