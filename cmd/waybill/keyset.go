package main

import (
	"errors"
	"fmt"
	"io/fs"

	"waybill/adapters/secrets"
)

// keysetCmd is about the keyset that seals secrets.
type keysetCmd struct {
	Create keysetCreateCmd `cmd:"" help:"Make a keyset in a new file of mode 0600."`
}

type keysetCreateCmd struct {
	Out string `required:"" placeholder:"F" help:"The new file; one that is there is never replaced."`
}

// Run makes the keyset. Without it nothing that it sealed opens again.
func (c *keysetCreateCmd) Run(in *invocation) error {
	vault, err := secrets.New()
	if err != nil {
		return err
	}
	err = vault.Save(c.Out)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already; a keyset is never replaced", c.Out)
	}
	if err != nil {
		return err
	}
	return say(in, map[string]string{"keyset_file": c.Out}, c.Out)
}
