package events

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
)

// freeze writes golden files that do not exist yet; it never changes one.
var freeze = flag.Bool("freeze", false, "write the golden files of new event versions")

func golden(k kind, version int) string {
	return filepath.Join("testdata", k.name+".v"+strconv.Itoa(version)+".json")
}

// TestFrozen reads every version that ever was, as it was written, and demands that
// the present version still writes the very same bytes.
func TestFrozen(t *testing.T) {
	for _, k := range kinds {
		for v := 1; v <= k.version; v++ {
			path := golden(k, v)
			if _, err := os.Stat(path); os.IsNotExist(err) && *freeze {
				data, _ := json.Marshal(filled(reflect.TypeOf(k.zero)).Interface())
				if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%s has no golden file; go test ./events -freeze writes it: %v", k.name, err)
			}
			data = data[:len(data)-1]
			e, err := Decode(k.name, v, data)
			if err != nil {
				t.Fatal(err)
			}
			name, version, again, err := Encode(e)
			if err != nil || name != k.name || version != k.version {
				t.Fatalf("encode: %s %d %v", name, version, err)
			}
			if v == k.version && string(again) != string(data) {
				t.Errorf("%s v%d changed:\n was %s\n now %s", k.name, v, data, again)
			}
		}
	}
}

// filled sets every field to something that is not its zero value, so that a
// golden file shows every member.
func filled(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch x := v.Addr().Interface().(type) {
	case *domain.Instant:
		*x = domain.At(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC))
		return v
	case *uuid.UUID:
		*x = uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057")
		return v
	case *domain.Hex:
		*x = domain.Hex{0xab, 0xcd}
		return v
	case *domain.Rate:
		*x = domain.Rate{Count: 1000, Per: time.Minute}
		return v
	case *domain.Duration:
		*x = domain.Duration(90 * time.Second)
		return v
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			v.Field(i).Set(filled(t.Field(i).Type))
		}
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(filled(t.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(t.Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(filled(t.Key()), filled(t.Elem()))
	case reflect.String:
		v.SetString("text <&> \"é\"")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Bool:
		v.SetBool(true)
	}
	return v
}

func TestUpcastingBringsOldVersionsUp(t *testing.T) {
	renamed := func(b json.RawMessage) (json.RawMessage, error) {
		var old struct {
			No int `json:"no"`
		}
		if err := json.Unmarshal(b, &old); err != nil {
			return nil, err
		}
		return json.Marshal(map[string]int{"attempt": old.No})
	}
	c := newCodec([]kind{of[domain.Delivered]("delivery.delivered", 2, renamed)})
	for version, data := range map[int]string{1: `{"no":3}`, 2: `{"attempt":3}`} {
		e, err := c.read("delivery.delivered", version, json.RawMessage(data))
		if err != nil || e != (domain.Delivered{Attempt: 3}) {
			t.Errorf("version %d: %v %v", version, e, err)
		}
	}
	for _, version := range []int{0, 3} {
		if _, err := c.read("delivery.delivered", version, json.RawMessage(`{}`)); err == nil {
			t.Errorf("version %d was read", version)
		}
	}
	if _, err := c.read("delivery.nonesuch", 1, json.RawMessage(`{}`)); err == nil {
		t.Error("an unknown name was read")
	}
}

// vector is the test vector that the package documentation shows.
func vector() Record {
	return Record{
		Envelope: Envelope{
			Tenant: "default", Stream: DeliveryStream,
			StreamID:   uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057"),
			RecordedAt: domain.At(time.UnixMicro(1767323045678901)),
			Actor:      "worker:w1",
			EndpointID: uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8058"),
		},
		Seq: 1, Name: "delivery.delivered", Version: 1, Data: json.RawMessage(`{"attempt":1}`),
	}
}

func TestVectorsOfThePackageDocs(t *testing.T) {
	r := vector()
	if got := hex.EncodeToString(r.Canonical(Hash{})); got != vectorCanonical {
		t.Errorf("canonical bytes are now\n%s", got)
	}
	first := r.Sum(Hash{})
	if first.String() != vectorFirst {
		t.Errorf("hash at seq 1 is now %s", first)
	}
	r.Seq, r.EndpointID = 2, uuid.UUID{}
	r.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if got := r.Sum(first); got.String() != vectorSecond {
		t.Errorf("hash at seq 2 is now %s", got)
	}
}

// TestEveryFieldIsHashed changes one field at a time and demands another hash.
func TestEveryFieldIsHashed(t *testing.T) {
	base := vector()
	base.Seq = 2
	sum := base.Sum(Hash{1})
	for name, change := range map[string]func(*Record){
		"tenant":       func(r *Record) { r.Tenant = "defaulu" },
		"stream":       func(r *Record) { r.Stream = AdminStream },
		"stream id":    func(r *Record) { r.StreamID[3]++ },
		"seq":          func(r *Record) { r.Seq++ },
		"name":         func(r *Record) { r.Name = "delivery.failed" },
		"version":      func(r *Record) { r.Version++ },
		"recorded at":  func(r *Record) { r.RecordedAt = r.RecordedAt.After(time.Microsecond) },
		"actor":        func(r *Record) { r.Actor = "worker:w2" },
		"endpoint":     func(r *Record) { r.EndpointID = uuid.UUID{} },
		"trace parent": func(r *Record) { r.TraceParent = "x" },
		"data":         func(r *Record) { r.Data = json.RawMessage(`{"attempt": 1}`) },
	} {
		r := base
		change(&r)
		if r.Sum(Hash{1}) == sum {
			t.Errorf("%s does not enter the hash", name)
		}
	}
	if base.Sum(Hash{2}) == sum {
		t.Error("the previous hash does not enter the hash")
	}
}

func TestChainFollowsTheStream(t *testing.T) {
	facts := []domain.Event{domain.Delivered{Attempt: 1}, domain.Failed{Why: domain.Exhausted}}
	records, err := Chain(vector().Envelope, 4, Hash{9}, facts)
	if err != nil || len(records) != 2 {
		t.Fatal(records, err)
	}
	if records[0].Seq != 5 || records[1].Seq != 6 {
		t.Error("the sequence has a hole")
	}
	if records[0].Hash != records[0].Sum(Hash{9}) || records[1].Hash != records[1].Sum(records[0].Hash) {
		t.Error("the chain is broken")
	}
}

func FuzzDecode(f *testing.F) {
	for _, k := range kinds {
		data, err := os.ReadFile(golden(k, k.version))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(k.name, k.version, data)
	}
	f.Add("delivery.claimed", 1, []byte(`{"claim_token":7}`))
	f.Fuzz(func(t *testing.T, name string, version int, data []byte) {
		e, err := Decode(name, version, data)
		if err != nil {
			return
		}
		n, v, again, err := Encode(e)
		if err != nil {
			return // e.g. a duration that text cannot hold
		}
		once, err := Decode(n, v, again)
		if err != nil {
			t.Fatalf("what was written is not read: %s: %v", again, err)
		}
		if _, _, twice, err := Encode(once); err != nil || string(twice) != string(again) {
			t.Fatalf("not stable:\n%s\n%s", again, twice)
		}
	})
}

// FuzzDecodersAgree: what the log's decoder makes of JSON is what the standard library makes
// of it. Members are compared as they would be written again.
func FuzzDecodersAgree(f *testing.F) {
	for _, k := range kinds {
		data, err := os.ReadFile(golden(k, k.version))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(k.name, data)
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		k, ok := standard.byName[name]
		if !ok || !json.Valid(data) { // json columns hold nothing else
			return
		}
		got, err := k.decode(data)
		want := reflect.New(reflect.TypeOf(k.zero))
		wantErr := json.Unmarshal(data, want.Interface())
		if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want.Elem().Interface()) {
			t.Fatalf("%s %s:\n%+v %v\n%+v %v", name, data, got, err, want.Elem(), wantErr)
		}
	})
}
