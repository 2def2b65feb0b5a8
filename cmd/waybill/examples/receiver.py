#!/usr/bin/env python3
"""A receiver that handles each message once: it checks the signature, refuses old
timestamps, and remembers webhook ids in SQLite. Standard library only.

    receiver.py --listen 127.0.0.1:9000 --secrets FILE --db FILE

FILE has one whsec_… a line: two while a rotation overlaps. It is read for every request,
so a new secret needs no restart. See https://www.standardwebhooks.com.
"""

import argparse
import base64
import binascii
import hashlib
import hmac
import http.server
import sqlite3
import time

TOLERANCE = 300  # seconds that a timestamp may be off, either way
LARGEST = 1 << 20  # bytes of a body


def signed(secrets, headers, body):
    """Whether one of the secrets signed this very id, timestamp and body just now."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    try:
        if abs(time.time() - int(timestamp)) > TOLERANCE:
            return False
    except ValueError:
        return False
    given = [s[3:] for s in headers.get("webhook-signature", "").split(" ") if s.startswith("v1,")]
    content = f"{message_id}.{timestamp}.".encode() + body
    for secret in secrets:
        digest = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), content, hashlib.sha256).digest()
        expected = base64.b64encode(digest)
        if any(hmac.compare_digest(expected, s.encode()) for s in given):  # in constant time
            return bool(message_id)
    return False


def handle(db, message_id, event_type, body):
    """The message's effect and its id commit together: whatever happens, it is handled
    once. False if it was before. This example's effect is one more row."""
    with db:  # one transaction
        new = db.execute("insert or ignore into seen (webhook_id, at) values (?, ?)", (message_id, time.time()))
        if new.rowcount == 0:
            return False
        db.execute("insert into effects (event_type, body) values (?, ?)", (event_type, body))
        return True


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30  # of a connection on which nothing happens

    def do_POST(self):
        length = int(self.headers.get("Content-Length", "0"))
        if not 0 <= length <= LARGEST:
            self.close_connection = True
            return self.answer(413)
        body = self.rfile.read(length)
        with open(self.server.options.secrets, encoding="ascii") as f:
            secrets = f.read().split()
        try:
            if not signed(secrets, self.headers, body):
                return self.answer(401)
        except (binascii.Error, UnicodeError):
            return self.answer(401)
        db = sqlite3.connect(self.server.options.db, timeout=10)
        try:
            new = handle(db, self.headers["webhook-id"], self.headers.get("waybill-event-type", ""), body)
        finally:
            db.close()
        print("handled" if new else "duplicate", self.headers["webhook-id"], flush=True)
        self.answer(204)  # a duplicate is a success too, or it would come again

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", default="127.0.0.1:9000")
    parser.add_argument("--secrets", required=True)
    parser.add_argument("--db", required=True)
    options = parser.parse_args()
    db = sqlite3.connect(options.db)
    db.executescript("""create table if not exists seen (webhook_id text primary key, at real not null);
        create table if not exists effects (event_type text, body blob);""")
    db.close()
    host, _, port = options.listen.rpartition(":")
    server = http.server.ThreadingHTTPServer((host, int(port)), Receiver)
    server.options = options
    print(f"listening on http://{host}:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
