package domain_test

import (
	"reflect"
	"testing"
	"time"

	"waybill/domain"
)

// rotation is one rotation: when, which secret, and how long the old ones sign on.
type rotation struct {
	at      time.Duration
	secret  string
	overlap time.Duration
}

func rotatedBy(rotations ...rotation) domain.Target {
	t := domain.Target{Secrets: []domain.SigningSecret{{Secret: "a"}}}
	for _, r := range rotations {
		t = t.Rotate(r.secret, in(r.at+r.overlap), in(r.at))
	}
	return t
}

func TestWhoSignsWhen(t *testing.T) {
	const h = time.Hour
	for name, c := range map[string]struct {
		rotations []rotation
		at        time.Duration
		want      []string
	}{
		"never rotated":                        {nil, 1000 * h, []string{"a"}},
		"within the overlap, newest first":     {[]rotation{{0, "b", h}}, h - time.Microsecond, []string{"b", "a"}},
		"at its end":                           {[]rotation{{0, "b", h}}, h, []string{"b"}},
		"without an overlap":                   {[]rotation{{0, "b", 0}}, 0, []string{"b"}},
		"with an overlap that has passed":      {[]rotation{{0, "b", -h}}, -2 * h, []string{"b"}},
		"two rotations, both overlap":          {[]rotation{{0, "b", 24 * h}, {h, "c", 24 * h}}, 2 * h, []string{"c", "b", "a"}},
		"the older ends first":                 {[]rotation{{0, "b", 24 * h}, {h, "c", 24 * h}}, 24 * h, []string{"c", "b"}},
		"a longer overlap revives nothing":     {[]rotation{{0, "b", h}, {0, "c", 24 * h}}, 2 * h, []string{"c", "b"}},
		"no overlap ends the older ones too":   {[]rotation{{0, "b", 24 * h}, {h, "c", 0}}, h, []string{"c"}},
		"a short overlap shortens the older's": {[]rotation{{0, "b", 24 * h}, {h, "c", h}}, 2 * h, []string{"c"}},
	} {
		if got := rotatedBy(c.rotations...).SigningAt(in(c.at).Time); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestSoManySignAtOnce(t *testing.T) {
	var rotations []rotation
	var want []string
	for i := range domain.MaxSecrets + 3 {
		name := string(rune('b' + i))
		rotations = append(rotations, rotation{time.Duration(i) * time.Second, name, time.Hour})
		want = append([]string{name}, want...)
	}
	if got := rotatedBy(rotations...).SigningAt(in(time.Minute).Time); !reflect.DeepEqual(got, want[:domain.MaxSecrets]) {
		t.Errorf("got %v, want %v", got, want[:domain.MaxSecrets])
	}
}

func TestWhatHasEndedIsForgotten(t *testing.T) {
	got := rotatedBy(rotation{0, "b", time.Hour}, rotation{time.Hour, "c", time.Hour}).Secrets
	want := []domain.SigningSecret{{Secret: "c"}, {Secret: "b", NotAfter: in(2 * time.Hour)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRotatingChangesOnlyTheCopy(t *testing.T) {
	before := domain.Target{
		URL: "https://a.example", Headers: map[string]string{"x": "1"}, FingerprintKey: []byte{1},
		Secrets: []domain.SigningSecret{{Secret: "b"}, {Secret: "a", NotAfter: in(time.Hour)}},
	}
	after := before.Rotate("c", in(time.Minute), noon)
	after.Headers["x"] = "2"
	if before.Headers["x"] != "1" || !before.Secrets[0].NotAfter.IsZero() || before.Secrets[1].NotAfter != in(time.Hour) {
		t.Errorf("the target it came from is now %+v", before)
	}
	if after.URL != before.URL || !reflect.DeepEqual(after.FingerprintKey, before.FingerprintKey) {
		t.Errorf("rotating changed more than secrets: %+v", after)
	}
}
