#!/usr/bin/env python3
"""An order and the message about it commit together, or neither does: one more insert,
into waybill.outbox, in the transaction that the application has anyway.

    APP_DATABASE_URL=postgres://… outbox_django.py --endpoint ID --order 4711 [--fail]

enqueue() takes any DB-API cursor, Django's too:

    from django.db import connection, transaction

    with transaction.atomic(), connection.cursor() as cursor:
        order.save()
        enqueue(cursor, ENDPOINT, "order.paid", {"order": order.pk}, f"order-{order.pk}-paid")

Here, without Django, atomic() is a stand-in for the first line: with psycopg or psycopg2
where one is installed, else through psql, which gets the whole transaction at its end.
"""

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import urllib.parse


def enqueue(cursor, endpoint, event_type, payload, key):
    """Hand a message in as part of the cursor's transaction. The key makes a second
    insert of the same fact harmless."""
    cursor.execute(
        "insert into waybill.outbox (endpoint_id, event_type, payload, idempotency_key) values (%s, %s, %s, %s)",
        (str(endpoint), event_type, json.dumps(payload).encode(), key))


@contextlib.contextmanager
def atomic(url):
    """A cursor whose statements commit together at the end, unless an exception ends it."""
    for name in ("psycopg", "psycopg2"):
        try:
            driver = importlib.import_module(name)
        except ImportError:
            continue
        connection = driver.connect(url)
        try:
            with connection, connection.cursor() as cursor:  # commits, or rolls back
                yield cursor
        finally:
            connection.close()
        return
    cursor = Psql()
    yield cursor
    cursor.commit(url)


class Psql:
    """Collects statements; commit() runs them as one transaction, all or none."""

    def __init__(self):
        self.script = []

    def execute(self, statement, values=()):
        parts = statement.split("%s")
        if len(parts) != len(values) + 1:
            raise ValueError("as many %s as values")
        self.script.append("".join(p + v for p, v in zip(parts, [*map(literal, values), ""])) + ";\n")

    def commit(self, url):
        subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "--single-transaction"], check=True, text=True,
                       input="set standard_conforming_strings = on;\n" + "".join(self.script), env=environment(url))


def literal(value):
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return r"'\x" + value.hex() + "'::bytea"
    if isinstance(value, int):
        return str(int(value))
    return "'" + str(value).replace("'", "''") + "'"


def environment(url):
    """The URL in libpq's variables: other users can see a process's arguments."""
    u = urllib.parse.urlsplit(url)
    more = dict(urllib.parse.parse_qsl(u.query))
    libpq = {"PGHOST": more.get("host") or u.hostname, "PGPORT": more.get("port") or u.port,
             "PGUSER": more.get("user") or u.username, "PGPASSWORD": more.get("password") or u.password,
             "PGDATABASE": u.path.lstrip("/"), "PGSSLMODE": more.get("sslmode")}
    given = {k: urllib.parse.unquote(str(v)) for k, v in libpq.items() if v}
    return {**os.environ, **given}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--order", required=True, type=int)
    parser.add_argument("--fail", action="store_true", help="as if the application had a fault before the commit")
    options = parser.parse_args()
    with atomic(os.environ["APP_DATABASE_URL"]) as cursor:
        enqueue(cursor, options.endpoint, "order.paid", {"order": options.order, "by": "O'Hara"}, f"order-{options.order}-paid")
        cursor.execute("insert into orders (id, customer) values (%s, %s)", (options.order, "O'Hara"))
        if options.fail:
            raise SystemExit("the application failed; neither the order nor the message exists")


if __name__ == "__main__":
    main()
