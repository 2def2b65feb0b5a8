// Package secrets seals what a ledger must keep and must not show: URLs with their
// query values, header values, signing secrets. In the database they lie sealed;
// the keys lie elsewhere, in one keyset that an operator guards.
//
//	                 Seal, Open          Load, Parse, FromFile
//	database row ◀──────────────▶ Vault ◀───────────────────── keyset (JSON)
//
// A sealed value is an AEAD ciphertext of Tink, by default AES-256-GCM: who alters
// a byte of it, or moves it to another row, gets [ErrNotOpened] and no bytes. The
// second holds because of the context, which the caller binds to the value (an
// endpoint's id): what was sealed under one opens under no other. The context is not
// stored and not secret. A sealed value says which key sealed it, and how long its
// plaintext is; it says nothing else.
//
// A keyset may hold several keys. The primary seals, all of them open, so that a key
// is replaced without a moment at which old rows are shut: give every process a
// keyset that holds the new key beside the old one ([Vault.Rotated] makes it), seal
// again what matters, then take the old key out. One key seals safely about 2³²
// values (NIST SP 800-38D, section 8.3, with the random 96-bit nonces used here).
//
// The keyset is clear text: base64 inside JSON, in the form that Tink's own tools
// read and write. Whoever has it and the database has every secret; whoever loses it
// has lost every secret, and no backup of the database brings them back. So it
// belongs in a file of mode 0600, kept and backed up apart from the database, or in
// an environment variable that a secret manager fills. [FromFile] refuses a file that
// others can read, because that mistake is silent otherwise.
//
// No error of this package contains key material: what the decoder says of a
// malformed keyset may quote it, and is therefore dropped.
package secrets
