#!/usr/bin/env python3
"""A remote worker: it claims deliveries from Waybill, calls a provider with its own
code, and reports what came of it. Standard library only. Run as many as you like.

    WAYBILL_API     http://127.0.0.1:8080/v1
    WAYBILL_KEY     wbk_…, of scope claim
    PROVIDER_URL    what call_provider calls; replace that function by your own
    WORKER_NAME     for those who read the history     (HOST-PID)
    CONCURRENCY     calls at a time                    (4)
    LEASE           seconds that a claim lasts         (60, at least 10)
    TIMEOUT         seconds that one call may take     (15, at most LEASE - 6)
    WAIT            seconds to wait for work           (20, at most 25)

It keeps nothing of its own. Killed at any moment, it leaves each call that was under way
in doubt; once the lease ends Waybill tries again or holds it, as the endpoint says.
"""

import base64
import concurrent.futures
import http.client
import json
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request

API = os.environ["WAYBILL_API"].rstrip("/")
KEY = os.environ["WAYBILL_KEY"]
PROVIDER = os.environ["PROVIDER_URL"]
NAME = os.environ.get("WORKER_NAME") or f"{socket.gethostname()}-{os.getpid()}"
CONCURRENCY = int(os.environ.get("CONCURRENCY", "4"))
LEASE = int(os.environ.get("LEASE", "60"))
TIMEOUT = min(float(os.environ.get("TIMEOUT", "15")), LEASE - 6)
WAIT = int(os.environ.get("WAIT", "20"))
MARGIN = 5  # seconds that a lease must outlast its call

stopping = threading.Event()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer, not a reason to call somebody else."""

    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirect)


def call_provider(item):
    """Make the one call and say honestly what came of it. The message id is the same on
    every attempt: where the provider knows idempotency keys, it is the key."""
    request = urllib.request.Request(PROVIDER, base64.b64decode(item["payload_base64"]), {
        "Content-Type": item["content_type"], "Idempotency-Key": item["message_id"],
        "waybill-delivery-id": item["delivery_id"], "waybill-attempt": str(item["attempt"]),
    })
    try:
        with opener.open(request, timeout=TIMEOUT) as response:
            return {"outcome": "succeeded", "status": response.status}
    except urllib.error.HTTPError as e:
        e.close()
        return {"outcome": "refused", "status": e.code, "reason": "http_status"}
    except urllib.error.URLError as e:
        if isinstance(e.reason, ConnectionRefusedError):
            return {"outcome": "unreached", "reason": "connect"}
        if isinstance(e.reason, socket.gaierror):
            return {"outcome": "unreached", "reason": "dns"}
        return {"outcome": "unknown", "reason": "timeout" if isinstance(e.reason, TimeoutError) else "reset"}
    except TimeoutError:
        return {"outcome": "unknown", "reason": "timeout"}
    except (OSError, http.client.HTTPException):
        return {"outcome": "unknown", "reason": "reset"}


def ask(path, body, timeout=15):
    """One call of Waybill's API: (status, answer)."""
    request = urllib.request.Request(API + path, json.dumps(body).encode(), {
        "Authorization": "Bearer " + KEY, "Content-Type": "application/json"})
    try:
        with opener.open(request, timeout=timeout) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as e:
        with e:
            return e.code, json.loads(e.read() or b"{}")


def insist(path, body):
    """Until it is answered: the same token may report as often as it likes, and gets its
    first answer again."""
    pause = 0.2
    while True:
        try:
            status, answer = ask(path, body)
            if status < 500 and status != 429:
                return status, answer
            why = f"{status} {answer.get('code')}"
        except (OSError, http.client.HTTPException, ValueError) as e:
            why = e
        print(f"{path}: trying again: {why}", flush=True)
        time.sleep(pause)
        pause = min(2 * pause, 5)


class Claim:
    """One delivery, ours until its lease ends: counted by our own, monotonic clock from
    before it was asked for, so that we stop believing in it before Waybill does."""

    def __init__(self, item, asked):
        self.item, self.until = item, asked + LEASE

    def post(self, verb, **more):
        return insist(f"/claims/{self.item['delivery_id']}/{verb}", {"claim_token": self.item["claim_token"], **more})

    def long_enough(self):
        return self.until - time.monotonic() >= TIMEOUT + MARGIN

    def extend(self):
        asked = time.monotonic()
        status, _ = self.post("extend", lease_seconds=LEASE)
        if status == 200:
            self.until = asked + LEASE

    def work(self):
        """Call and report. A call that could outlast its lease is not begun."""
        if not self.long_enough():
            self.extend()  # the claim may have waited long for its work
        if stopping.is_set() or not self.long_enough():
            self.post("release")  # never sent
            return
        result = call_provider(self.item)
        status, answer = self.post("result", **result)
        late = ", superseded" if answer.get("superseded") else ""
        print(f"{self.item['delivery_id']} attempt {self.item['attempt']}: {result['outcome']} -> "
              f"{answer.get('state', status)}{late}", flush=True)


def claim():
    """Takes what is due, waiting for it."""
    asked = time.monotonic()
    status, answer = ask(f"/claims?wait={WAIT}s", {"worker": NAME, "limit": CONCURRENCY, "lease_seconds": LEASE}, WAIT + 20)
    if status != 200:
        raise OSError(f"{status} {answer.get('code')}: {answer.get('detail')}")
    return [Claim(item, asked) for item in answer["items"]]


def main():
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, lambda *_: stopping.set())
    with concurrent.futures.ThreadPoolExecutor(CONCURRENCY) as pool:
        print(f"claiming as {NAME}", flush=True)
        while not stopping.is_set():
            try:
                claims = claim()
            except (OSError, http.client.HTTPException, ValueError) as e:
                print(f"claim: trying again: {e}", flush=True)
                stopping.wait(1)
                continue
            list(pool.map(Claim.work, claims))  # all of them, then the next


if __name__ == "__main__":
    main()
