// Command receiver handles each message once: it checks the signature, refuses old
// timestamps, and remembers webhook ids in a file. Standard library only.
//
//	receiver --listen 127.0.0.1:9000 --secrets FILE --db FILE
//
// The secrets' file has one whsec_… a line: two while a rotation overlaps. It is read
// for every request, so a new secret needs no restart. See
// https://www.standardwebhooks.com. A receiver with a database keeps the ids there, in
// the transaction of the message's effect; this one's effect is the line that it keeps.
package main

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	tolerance = 5 * time.Minute // that a timestamp may be off, either way
	largest   = 1 << 20         // bytes of a body
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9000", "where to listen")
	secrets := flag.String("secrets", "", "a file of secrets, one a line")
	db := flag.String("db", "", "a file for the ids that were handled")
	flag.Parse()
	seen, err := open(*db)
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on http://" + l.Addr().String())
	server := http.Server{Handler: &receiver{secrets: *secrets, seen: seen}, ReadTimeout: 30 * time.Second}
	log.Fatal(server.Serve(l))
}

type receiver struct {
	secrets string
	seen    *journal
}

// ServeHTTP answers 204 also to a duplicate, or it would come again.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, largest))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	text, err := os.ReadFile(r.secrets)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if !signed(strings.Fields(string(text)), q.Header, body, time.Now()) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	id := q.Header.Get("webhook-id")
	first, err := r.seen.add(id)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case first:
		fmt.Println("handled", id)
	default:
		fmt.Println("duplicate", id)
	}
	w.WriteHeader(http.StatusNoContent)
}

// signed reports whether one of the secrets signed this very id, timestamp and body
// just now.
func signed(secrets []string, h http.Header, body []byte, now time.Time) bool {
	id, timestamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) == 0 {
			continue
		}
		mac := hmac.New(sha256.New, key)
		_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
		for given := range strings.FieldsSeq(h.Get("webhook-signature")) {
			sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(given, "v1,"))
			if err == nil && hmac.Equal(sum, mac.Sum(nil)) { // in constant time
				return true
			}
		}
	}
	return false
}

// journal is the ids that were handled, on disk before they count.
type journal struct {
	mu   sync.Mutex
	ids  map[string]bool
	file *os.File
}

func open(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{ids: map[string]bool{}, file: f}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		j.ids[lines.Text()] = true
	}
	return j, lines.Err()
}

// add reports whether the id is new. It is kept, quoted, so that it is one line.
func (j *journal) add(id string) (bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	line := strconv.Quote(id)
	if j.ids[line] {
		return false, nil
	}
	if _, err := j.file.WriteString(line + "\n"); err != nil {
		return false, err
	}
	if err := j.file.Sync(); err != nil {
		return false, err
	}
	j.ids[line] = true
	return true, nil
}
