package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/mac"
)

func TestSealedBytesOpenUnderTheirContextOnly(t *testing.T) {
	v := fresh(t)
	for _, plain := range [][]byte{nil, {0}, []byte("whsec_abc"), bytes.Repeat([]byte("x"), 1<<20)} {
		sealed := seal(t, v, plain, "endpoint-1")
		if len(plain) > 8 && bytes.Contains(sealed, plain[:8]) {
			t.Error("the sealed bytes show the plaintext")
		}
		if got, err := v.Open(sealed, []byte("endpoint-1")); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%d bytes: got %d bytes, %v", len(plain), len(got), err)
		}
		for _, other := range []string{"", "endpoint-2", "endpoint-1\x00"} {
			if _, err := v.Open(sealed, []byte(other)); !errors.Is(err, ErrNotOpened) {
				t.Errorf("under context %q: got %v, want ErrNotOpened", other, err)
			}
		}
	}
}

func TestSealingTwiceGivesDifferentBytes(t *testing.T) {
	v := fresh(t)
	if bytes.Equal(seal(t, v, []byte("same"), "c"), seal(t, v, []byte("same"), "c")) {
		t.Error("the same nonce was used twice")
	}
}

func TestEveryAlteredBitIsNoticed(t *testing.T) {
	v := fresh(t)
	sealed := seal(t, v, []byte("secret"), "c")
	for i := range len(sealed) * 8 {
		altered := bytes.Clone(sealed)
		altered[i/8] ^= 1 << (i % 8)
		if _, err := v.Open(altered, []byte("c")); !errors.Is(err, ErrNotOpened) {
			t.Fatalf("bit %d altered: got %v, want ErrNotOpened", i, err)
		}
	}
	for n := range len(sealed) {
		if _, err := v.Open(sealed[:n], []byte("c")); !errors.Is(err, ErrNotOpened) {
			t.Fatalf("cut to %d bytes: got %v, want ErrNotOpened", n, err)
		}
	}
}

func TestAnotherVaultOpensNothing(t *testing.T) {
	if _, err := fresh(t).Open(seal(t, fresh(t), []byte("x"), "c"), []byte("c")); !errors.Is(err, ErrNotOpened) {
		t.Errorf("got %v, want ErrNotOpened", err)
	}
}

func TestKeysetSurvivesItsText(t *testing.T) {
	v := fresh(t)
	again, err := Parse(text(t, v))
	if err != nil {
		t.Fatal(err)
	}
	mustOpen(t, again, seal(t, v, []byte("there"), "c"))
	mustOpen(t, v, seal(t, again, []byte("and back"), "c"))
}

func TestRotatedKeysetSealsWithTheNewAndOpensWithAll(t *testing.T) {
	first := fresh(t)
	vaults := []*Vault{first}
	for range 3 {
		next, err := vaults[len(vaults)-1].Rotated()
		if err != nil {
			t.Fatal(err)
		}
		if next, err = Parse(text(t, next)); err != nil {
			t.Fatal(err)
		}
		vaults = append(vaults, next)
	}
	for i, sealer := range vaults {
		for j, opener := range vaults {
			_, err := opener.Open(seal(t, sealer, []byte("x"), "c"), []byte("c"))
			if opens := err == nil; opens != (j >= i) {
				t.Errorf("sealed after %d rotations, opened after %d: %v", i, j, err)
			}
		}
	}
	if !strings.HasPrefix(vaults[3].String(), "vault of 4 keys, primary ") {
		t.Errorf("got %q", vaults[3])
	}
}

func TestRetiredKeyOpensNoMore(t *testing.T) {
	old := fresh(t)
	both, err := old.Rotated()
	if err != nil {
		t.Fatal(err)
	}
	m := keyset.NewManagerFromHandle(both.keys)
	if err := m.Delete(old.keys.KeysetInfo().GetPrimaryKeyId()); err != nil {
		t.Fatal(err)
	}
	h, err := m.Handle()
	if err != nil {
		t.Fatal(err)
	}
	only, err := open(h)
	if err != nil {
		t.Fatal(err)
	}
	mustOpen(t, only, seal(t, both, []byte("new"), "c"))
	if _, err := only.Open(seal(t, old, []byte("old"), "c"), []byte("c")); !errors.Is(err, ErrNotOpened) {
		t.Errorf("got %v, want ErrNotOpened", err)
	}
}

func TestWhatIsNoKeysetIsRefusedWithoutQuotingIt(t *testing.T) {
	key := keyMaterial(t, fresh(t))
	other, err := keyset.NewHandle(mac.HMACSHA256Tag256KeyTemplate())
	if err != nil {
		t.Fatal(err)
	}
	var hmac bytes.Buffer
	if err := insecurecleartextkeyset.Write(other, keyset.NewJSONWriter(&hmac)); err != nil {
		t.Fatal(err)
	}
	good := text(t, fresh(t))
	for name, bad := range map[string]string{
		"nothing":          "",
		"null":             "null",
		"no keys":          "{}",
		"a bare key":       key,
		"a key as member":  `{"` + key + `": 1}`,
		"a key as a value": `{"primaryKeyId": 1, "key": [{"keyData": {"value": "!` + key + `"}}]}`,
		"two texts":        good + good,
		"cut":              good[:len(good)-20],
		"disabled":         strings.Replace(good, "ENABLED", "DISABLED", 1),
		"not an AEAD":      hmac.String(),
		"too long":         good + strings.Repeat(" ", MaxKeyset),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(bad)
			if !errors.Is(err, ErrKeyset) {
				t.Fatalf("got %v, want ErrKeyset", err)
			}
			if strings.Contains(err.Error(), key[:8]) {
				t.Errorf("the error quotes the key: %v", err)
			}
		})
	}
}

func TestAVaultPrintsNoKey(t *testing.T) {
	v := fresh(t)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("vault", "v", v)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("vault", "v", v)
	printed := log.String() + fmt.Sprintf("%v %+v %#v %s %q", v, v, v, v, v)
	raw, err := base64.StdEncoding.DecodeString(keyMaterial(t, v))
	if err != nil {
		t.Fatal(err)
	}
	bare := raw[2:] // behind the protobuf tag and length
	for _, form := range []string{string(bare), base64.StdEncoding.EncodeToString(raw), fmt.Sprintf("%x", bare), fmt.Sprint(bare)} {
		if strings.Contains(printed, strings.Trim(form, "[]")) {
			t.Errorf("printed: %s", printed)
		}
	}
}

func TestAVaultIsSafeForConcurrentUse(t *testing.T) {
	v := fresh(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			c := fmt.Sprint(i)
			for range 200 {
				sealed, err := v.Seal([]byte(c), []byte(c))
				if err != nil {
					t.Error(err)
					return
				}
				if plain, err := v.Open(sealed, []byte(c)); err != nil || string(plain) != c {
					t.Errorf("got %q, %v", plain, err)
				}
				_ = v.String()
			}
		})
	}
	wg.Wait()
}

func fresh(t testing.TB) *Vault {
	t.Helper()
	v, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func text(t testing.TB, v *Vault) string {
	t.Helper()
	b, err := v.json()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func seal(t testing.TB, v *Vault, plain []byte, context string) []byte {
	t.Helper()
	sealed, err := v.Seal(plain, []byte(context))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func mustOpen(t testing.TB, v *Vault, sealed []byte) {
	t.Helper()
	if _, err := v.Open(sealed, []byte("c")); err != nil {
		t.Error(err)
	}
}

// keyMaterial returns the base64 of the first key, as the keyset's text holds it.
func keyMaterial(t testing.TB, v *Vault) string {
	t.Helper()
	var ks struct {
		Key []struct {
			KeyData struct{ Value string }
		}
	}
	if err := json.Unmarshal([]byte(text(t, v)), &ks); err != nil || len(ks.Key) == 0 {
		t.Fatal("no key in the text", err)
	}
	return ks.Key[0].KeyData.Value
}
