package secrets

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
)

// FuzzParse: no text makes the decoder panic, and what it accepts seals, opens, and
// survives being written again.
func FuzzParse(f *testing.F) {
	v := fresh(f)
	rotated, err := v.Rotated()
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"", "{}", "null", `{"primaryKeyId":1,"key":[{}]}`, text(f, v), text(f, rotated)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Parse(s)
		if err != nil {
			if !errors.Is(err, ErrKeyset) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		again, err := Parse(text(t, v))
		if err != nil {
			t.Fatalf("written and read again: %v", err)
		}
		mustOpen(t, again, seal(t, v, []byte("x"), "c"))
		_ = v.String()
	})
}

// FuzzOpen: no bytes make Open panic, and nothing opens but what was sealed.
func FuzzOpen(f *testing.F) {
	v, err := Parse(frozenKeyset)
	if err != nil {
		f.Fatal(err)
	}
	genuine := frozenBytes(f)
	f.Add([]byte{}, []byte{})
	f.Add(genuine, []byte("endpoint"))
	f.Add(genuine, []byte("other"))
	f.Add(genuine[:5], []byte("endpoint"))
	f.Fuzz(func(t *testing.T, sealed, context []byte) {
		plain, err := v.Open(sealed, context)
		switch {
		case err == nil && !(bytes.Equal(sealed, genuine) && string(context) == "endpoint"):
			t.Fatalf("opened %x under %x as %q", sealed, context, plain)
		case err != nil && (!errors.Is(err, ErrNotOpened) || plain != nil):
			t.Fatalf("got %q, %v", plain, err)
		}
	})
}

// What one version of this package wrote, all later ones read: rows outlive programs.
// (Of two keys; the keys guard nothing but this test.)
const frozenKeyset = `{"primaryKeyId":645560672,"key":[
{"keyData":{"typeUrl":"type.googleapis.com/google.crypto.tink.AesGcmKey","value":"GiCN1MocsgRLNQtT0MdcVFKV6Fnh3xjg8Fyk3GXbHTSUbw==","keyMaterialType":"SYMMETRIC"},"status":"ENABLED","keyId":1588559089,"outputPrefixType":"TINK"},
{"keyData":{"typeUrl":"type.googleapis.com/google.crypto.tink.AesGcmKey","value":"GiBglPV7rtDchnrGGVQTf0I5YchFNLfgb1F+GIpvz2p8Qw==","keyMaterialType":"SYMMETRIC"},"status":"ENABLED","keyId":645560672,"outputPrefixType":"TINK"}]}`

const frozenSealed = "01267a79606febebb5d8a6d75dcc844b112bad6477ec388d66922fe7f5ec46bbd6badaf821a5ba6b39a3cc594a7c"

func TestFrozenBytesStillOpen(t *testing.T) {
	v, err := Parse(frozenKeyset)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := v.Open(frozenBytes(t), []byte("endpoint")); err != nil || string(plain) != "whsec_example" {
		t.Errorf("got %q, %v", plain, err)
	}
}

func frozenBytes(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString(frozenSealed)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
