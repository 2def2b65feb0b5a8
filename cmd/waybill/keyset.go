package main

import (
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
	if err := vault.Save(c.Out); err != nil {
		return err
	}
	return say(in, map[string]string{"keyset_file": c.Out}, c.Out)
}
