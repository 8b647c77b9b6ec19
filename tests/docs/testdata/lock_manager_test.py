"""The scenarios of a lock manager, against the server in HOLDFAST_SERVER. The Go test sets what else they need."""

import os
import threading
import time
import unittest
from unittest import mock

import lock_manager
from lock_manager import LockError, LockLost, LockManager, LockTimeout


def manager(name, **options):
    return LockManager(f"{os.environ['SCENARIO']}-{name}", **options)


class Token:
    """A refresh token that becomes invalid when it is used."""

    def __init__(self):
        self.value, self.expired, self.refreshed, self.failed = "old", True, 0, 0

    def refresh(self, seen):
        if seen != self.value:
            self.failed += 1
            return
        time.sleep(0.05)  # the call of the interface
        self.refreshed += 1
        self.value, self.expired = f"new {self.refreshed}", False


class Clock:
    """A clock that can run ahead, in place of the module time."""

    ahead, sleep = 0.0, staticmethod(time.sleep)

    def monotonic(self):
        return time.monotonic() + self.ahead


class Scenarios(unittest.TestCase):
    def run_all(self, count, f):
        errors = []

        def guarded(i):
            try:
                f(i)
            except BaseException as e:
                errors.append(e)

        threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(errors, [])

    def test_a_token_is_refreshed_once(self):
        token = Token()

        def process(_):
            with manager("token").lock(timeout=30):
                seen = token.value
                if token.expired:
                    token.refresh(seen)

        self.run_all(5, process)
        self.assertEqual((token.refreshed, token.failed, token.value), (1, 0, "new 1"))

    def test_without_the_lock_tokens_are_lost(self):
        token, both = Token(), threading.Barrier(2)

        def process(_):
            seen = token.value
            both.wait()
            token.refresh(seen)

        self.run_all(2, process)
        self.assertGreater(token.refreshed + token.failed, 1)

    def test_parallelism_admits_so_many(self):
        guard, inside, most, together = threading.Lock(), [0], [0], threading.Barrier(3)

        def worker(_):
            with manager("slots", parallelism=3).lock(timeout=60):
                with guard:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                together.wait(timeout=60)  # three at once, three times
                with guard:
                    inside[0] -= 1

        self.run_all(9, worker)
        self.assertEqual(most[0], 3)

    def test_waiting_ends_with_the_timeout(self):
        holder = manager("timeout")
        holder.await_lock(timeout=10)
        begun = time.monotonic()
        with self.assertRaises(LockTimeout):
            manager("timeout").await_lock(timeout=0.5)
        self.assertGreaterEqual(time.monotonic() - begun, 0.5)
        holder.release_lock(raise_exception=True)
        with manager("timeout").lock(timeout=0):
            pass

    def test_an_exception_releases(self):
        with self.assertRaises(ZeroDivisionError):
            with manager("error").lock(timeout=10):
                1 / 0
        with manager("error").lock(timeout=0):
            pass

    def test_a_second_release_does_nothing(self):
        m = manager("twice")
        m.release_lock(raise_exception=True)
        m.await_lock(timeout=10)
        with self.assertRaises(LockError):
            m.await_lock(timeout=0)
        m.release_lock(raise_exception=True)
        other = manager("twice")
        other.await_lock(timeout=10)
        m.release_lock(raise_exception=True)
        with self.assertRaises(LockTimeout):
            manager("twice").await_lock(timeout=0)
        self.assertGreater(other.token, m.token)
        other.release_lock()

    def test_the_lock_is_renewed(self):
        with manager("long", ttl=4.0).lock(timeout=10) as m:
            with self.assertRaises(LockTimeout):
                manager("long").await_lock(timeout=5.0)
            self.assertFalse(m.lost.is_set())

    def test_a_lock_after_a_long_wait_is_held(self):
        holder, waiter = manager("patient"), manager("patient")
        holder.await_lock(timeout=10)
        clock = Clock()

        def release():
            clock.ahead = 40.0  # longer than the TTL
            holder.release_lock()

        with mock.patch.object(lock_manager, "time", clock):
            threading.Timer(0.5, release).start()
            with waiter.lock(timeout=100) as m:
                self.assertFalse(m.lost.wait(timeout=0.2))

    def test_a_lost_lock_is_noticed(self):
        with self.assertRaises(LockLost):
            with manager("lost", ttl=1.0).lock(timeout=10) as m:
                # Somebody with the session's key ends the lease.
                m._send("DELETE", f"/api/locks/{m._lease.id}")
                self.assertTrue(m.lost.wait(timeout=30))

    def test_an_unreachable_server_is_tried_again(self):
        m = manager("gone", server="http://127.0.0.1:1")
        begun = time.monotonic()
        with self.assertRaises(LockTimeout):
            m.await_lock(timeout=0.3, initial_delay=0.05)
        self.assertGreaterEqual(time.monotonic() - begun, 0.3)


if __name__ == "__main__":
    unittest.main()
