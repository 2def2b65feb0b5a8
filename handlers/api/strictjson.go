package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// What JSON may hold and the ledger cannot keep as it came.
var (
	errNotUTF8       = errors.New("the JSON is not valid UTF-8")
	errNUL           = errors.New("a text contains U+0000")
	errLoneSurrogate = errors.New(`a text contains half of a surrogate pair (\ud800 to \udfff)`)
	errNotJSON       = errors.New("the body is not valid JSON")
)

// checkJSON refuses what is not JSON and what a decoder would silently change:
// invalid UTF-8, lone surrogates, U+0000 and members given twice.
func checkJSON(data []byte) error {
	if err := syntax(data); err != nil {
		return err
	}
	if err := checkText(data); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return checkNames(dec)
}

// syntax says where JSON ends to be JSON. It bounds the depth.
func syntax(data []byte) error {
	var wrong *json.SyntaxError
	var whole json.RawMessage
	err := json.Unmarshal(data, &whole)
	if errors.As(err, &wrong) {
		return fmt.Errorf("%w: at byte %d: %s", errNotJSON, wrong.Offset, wrong.Error())
	}
	if err != nil {
		return errNotJSON
	}
	return nil
}

// checkText refuses texts that a column cannot keep, in valid JSON: a backslash
// occurs only inside strings there.
func checkText(data []byte) error {
	if !utf8.Valid(data) {
		return errNotUTF8
	}
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		if i++; data[i] != 'u' {
			continue
		}
		r := hex4(data[i+1:])
		i += 4
		switch {
		case r == 0:
			return errNUL
		case r >= 0xdc00 && r <= 0xdfff:
			return errLoneSurrogate
		case r >= 0xd800 && r <= 0xdbff:
			if !isLowHalf(data[i+1:]) {
				return errLoneSurrogate
			}
			i += 6
		}
	}
	return nil
}

func isLowHalf(rest []byte) bool {
	if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
		return false
	}
	r := hex4(rest[2:])
	return r >= 0xdc00 && r <= 0xdfff
}

func hex4(b []byte) uint64 {
	r, _ := strconv.ParseUint(string(b[:4]), 16, 16) // valid JSON has four digits here
	return r
}

// checkNames refuses objects that give a member twice, in valid JSON.
func checkNames(dec *json.Decoder) error {
	token, err := dec.Token()
	if err != nil {
		return errNotJSON
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for dec.More() {
		if open == '{' {
			if err := newName(dec, seen); err != nil {
				return err
			}
		}
		if err := checkNames(dec); err != nil {
			return err
		}
	}
	_, err = dec.Token() // the closing delimiter
	return err
}

func newName(dec *json.Decoder, seen map[string]bool) error {
	token, err := dec.Token()
	if err != nil {
		return errNotJSON
	}
	name, _ := token.(string)
	if seen[name] {
		return fmt.Errorf("member %.100q is given twice", name)
	}
	seen[name] = true
	return nil
}

// members reads an object's members as they are written, byte for byte.
func members(object json.RawMessage) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("expected a JSON object")
	}
	all, seen := map[string]json.RawMessage{}, map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, errNotJSON
		}
		name, _ := token.(string)
		if seen[name] {
			return nil, fmt.Errorf("member %.100q is given twice", name)
		}
		seen[name] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, errNotJSON
		}
		all[name] = value
	}
	return all, nil
}
