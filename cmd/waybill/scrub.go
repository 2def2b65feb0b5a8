package main

import (
	"net/url"
	"regexp"
	"strings"
)

// hidden stands where a secret was.
const hidden = "***"

// minSecret is the length from which on a password is looked for by itself; shorter
// ones would tear holes into ordinary words.
const minSecret = 4

var (
	userinfo = regexp.MustCompile(`://\S*@`)
	password = regexp.MustCompile(`(?i)(password|passwd|pwd)(\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)`)
	ourKeys  = regexp.MustCompile(`\b(wbk_|whsec_)[A-Za-z0-9+/=_-]+`)
)

// scrub hides in a text for people whatever is or looks like a secret: the password
// of the database's URL wherever it stands, the userinfo of any URL, passwords in
// the keyword form of connection strings, API keys and signing secrets.
func scrub(text, databaseURL string) string {
	for _, secret := range passwordsOf(databaseURL) {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	text = userinfo.ReplaceAllString(text, "://"+hidden+"@")
	text = password.ReplaceAllString(text, "${1}${2}"+hidden)
	return ourKeys.ReplaceAllString(text, "${1}"+hidden)
}

// passwordsOf returns a connection string's password in the spellings that it may
// turn up in.
func passwordsOf(databaseURL string) []string {
	var found []string
	add := func(s string) {
		if len(s) >= minSecret {
			found = append(found, s)
		}
	}
	if u, err := url.Parse(databaseURL); err == nil && u.Scheme != "" {
		if p, ok := u.User.Password(); ok {
			_, encoded, _ := strings.Cut(u.User.String(), ":")
			add(p)
			add(encoded)
		}
		add(u.Query().Get("password"))
	}
	for _, m := range password.FindAllStringSubmatch(databaseURL, -1) {
		add(m[3])
		add(strings.ReplaceAll(strings.Trim(m[3], "'"), `\`, ""))
	}
	return found
}
