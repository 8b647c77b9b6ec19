"""A lock manager over a Holdfast server, with Python's standard library alone.

    with LockManager("alarmbox-token-refresh").lock(timeout=30):
        token.refresh_from_db()
        ...

Everyone who uses the same name on the same server excludes each other, on all machines; parallelism=3 admits three at once.
A thread renews the lock while it is held. If that fails, `lost` is set and lock() raises LockLost at its end.

The server is the URL in HOLDFAST_SERVER, the API key is in HOLDFAST_API_KEY. A server without users needs none.
"""

import json
import os
import random
import secrets
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager


class LockError(Exception):
    """The server refused; code is one of docs/http.md."""

    def __init__(self, code, message):
        super().__init__(f"{message} ({code})")
        self.code = code


class LockTimeout(LockError):
    """The lock did not become free in time."""


class LockLost(LockError):
    """The lock ended before it was released: somebody else may hold it."""


class Unreachable(LockError):
    """The server gave no answer. The request may have been carried out."""


class LockManager:
    MAX_WAIT = 15.0  # seconds that one request waits; the next one keeps the position in the queue
    ANSWER = 5.0  # seconds for an answer that needs no waiting

    def __init__(self, name, parallelism=1, ttl=30.0, server=None, api_key=None):
        self.name, self.parallelism, self.ttl = name, parallelism, ttl
        self.server = (server or os.environ.get("HOLDFAST_SERVER", "http://127.0.0.1:8080")).rstrip("/")
        # Each manager is an owner of its own. Without a key, the secret is the owner.
        self._session = secrets.token_urlsafe(24)
        self._key = api_key or os.environ.get("HOLDFAST_API_KEY") or self._session
        self._lease = None
        self.token = None  # greater than that of every earlier holder: give it to systems that you write to
        self.lost = threading.Event()

    def await_lock(self, timeout=600.0, initial_delay=1.0, max_delay=30.0):
        """Waits in line for the lock. Raises LockTimeout after timeout seconds.

        The server grants in the order of arrival, so waiting needs no retries. The delays, which grow by half and vary by half, are
        for a server that cannot be reached.
        """
        if self._lease is not None:
            raise LockError("reentrant", "This manager holds the lock already.")
        ticket = secrets.token_urlsafe(24)  # a request that is repeated is the same acquisition
        deadline, delay = time.monotonic() + timeout, initial_delay
        try:
            while True:
                left = max(0.0, deadline - time.monotonic())
                sent = time.monotonic()
                try:
                    grant = self._ask(ticket, min(left, self.MAX_WAIT))
                    if time.monotonic() - sent > self.ttl / 3:
                        # It was granted some time after the request was sent. With the ticket, the same lock is extended from now on.
                        sent = time.monotonic()
                        grant = self._ask(ticket, 0.0)
                    self._hold(grant, sent)
                    return
                except LockError as e:
                    if e.code not in ("acquire_timeout", "acquire_denied", "replaced", "unavailable", "rate_limited", "unreachable"):
                        raise
                    if time.monotonic() >= deadline:
                        raise LockTimeout(e.code, f"{self.name} did not become free within {timeout} s.") from e
                    if e.code in ("unavailable", "rate_limited", "unreachable"):
                        time.sleep(min(delay * random.uniform(0.5, 1.5), max_delay, max(0.0, deadline - time.monotonic())))
                        delay = min(delay * 1.5, max_delay)
        except BaseException:
            self._give_up(ticket)  # an answer may have been lost
            raise

    def release_lock(self, raise_exception=False):
        """Releases the lock. If the release fails, the lock ends by itself after ttl seconds."""
        lease, self._lease = self._lease, None
        if lease is None:
            return
        lease.stop.set()
        lease.thread.join()
        try:
            self._send("DELETE", f"/api/locks/{lease.id}")
        except LockError:
            if raise_exception:
                raise

    @contextmanager
    def lock(self, timeout=600.0, initial_delay=1.0, max_delay=30.0):
        """Holds the lock for a with statement, and releases it always."""
        self.await_lock(timeout=timeout, initial_delay=initial_delay, max_delay=max_delay)
        try:
            yield self
        finally:
            self.release_lock()
        if self.lost.is_set():
            raise LockLost("lease_lost", f"{self.name} was lost while it was used.")

    def _ask(self, ticket, wait):
        body = {"paths": [["lock-managers", self.name]], "slots": self.parallelism, "ttl_ms": int(self.ttl * 1000),
                "wait_ms": int(wait * 1000), "ticket": ticket}
        return self._send("POST", "/api/locks", body, wait + self.ANSWER)

    def _hold(self, grant, sent):
        self.token = grant["token"]
        self.lost.clear()
        self._lease = _Lease(grant["lease_id"])
        self._lease.thread = threading.Thread(target=self._keep, args=(self._lease, sent), daemon=True)
        self._lease.thread.start()

    def _keep(self, lease, renewed):
        """Renews the lease. Its time counts from the moment when the last answered request was sent."""
        pause = self.ttl / 3
        while not lease.stop.wait(max(0.0, min(pause, renewed + self.ttl - time.monotonic()))):
            sent = time.monotonic()
            if sent - renewed >= self.ttl:
                self.lost.set()
                return
            try:
                self._send("PUT", f"/api/locks/{lease.id}", timeout=min(self.ANSWER, renewed + self.ttl - sent))
                renewed, pause = sent, self.ttl / 3
            except LockError as e:
                if e.code in ("lock_not_found", "not_locked_by_user", "not_allowed"):
                    self.lost.set()
                    return
                pause = min(1.0, self.ttl / 10)

    def _give_up(self, ticket):
        try:
            self._send("DELETE", f"/api/locks?ticket={ticket}")
        except LockError:
            pass  # the server keeps it for ttl seconds at most

    def _send(self, method, path, body=None, timeout=ANSWER):
        request = urllib.request.Request(self.server + path, method=method, data=json.dumps(body).encode() if body is not None else None)
        request.add_header("Authorization", f"Bearer {self._key}")
        request.add_header("Holdfast-Session", self._session)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return json.load(response)
        except urllib.error.HTTPError as e:
            try:
                says = json.load(e)
                raise LockError(says["error"], says["message"]) from None
            except (ValueError, KeyError):
                raise LockError("unavailable" if e.code >= 500 else "unexpected_answer", f"The answer has status {e.code}.") from None
        except (OSError, ValueError) as e:
            raise Unreachable("unreachable", f"{self.server} cannot be reached: {e}.") from None


class _Lease:
    def __init__(self, id):
        self.id, self.stop, self.thread = id, threading.Event(), None
