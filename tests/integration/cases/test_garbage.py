"""Garbage on the port: nothing that a peer sends costs much memory, harms a neighbour or goes
unanswered where an answer is possible."""

import random
import socket
import struct
import threading
import time
import unittest

import wire
from daemon import Case, wait_until
from wire import Wire, field_bytes, field_varint, frame, hello, open_session

MIB = 1 << 20
MALFORMED, UNSUPPORTED_API, UNSUPPORTED_VERSION, CORRUPT_FRAME, HELLO_REQUIRED, INVALID_REQUEST = 4, 2, 3, 5, 7, 32

LIMITS = """
[limits]
hello_timeout = "2s"
frame_timeout = "2s"
"""


class Neighbour(threading.Thread):
    """Sends small requests all the time and remembers how long each took."""

    def __init__(self, broker):
        super().__init__(daemon=True)
        self.wire = open_session(broker)
        self.times = []
        self.failure = None
        self.stopping = False

    def run(self):
        try:
            while not self.stopping:
                start = time.monotonic()
                self.wire.send(frame(wire.METADATA, field_varint(16, 1)))
                code = self.wire.status()
                assert code == 0, f"the neighbour got error {code}"
                self.times.append(time.monotonic() - start)
                time.sleep(0.002)
        except Exception as failure:  # noqa: BLE001: reported by end()
            self.failure = failure

    def end(self, at_least=0):
        deadline = time.monotonic() + 30
        while len(self.times) < at_least and not self.failure and time.monotonic() < deadline:
            time.sleep(0.01)
        self.stopping = True
        self.join(timeout=10)
        if self.failure:
            raise self.failure
        return self.times


class Garbage(Case):
    def setUp(self):
        super().setUp()
        self.daemon = self.broker(LIMITS).start()
        open_session(self.daemon).socket.close()
        self.rss_before = self.daemon.rss()

    def check_memory(self, mib=50):
        grown = self.daemon.rss() - self.rss_before
        self.assertLess(grown, mib * MIB, f"memory grew by {grown / MIB:.1f} MiB")

    def check_alive(self):
        self.assertIsNone(self.daemon.process.poll(), self.daemon.log())
        open_session(self.daemon).socket.close()

    # PRO-2
    def test_other_protocols_are_answered_or_named_in_the_log(self):
        with Wire(self.daemon, preface=None) as peer:
            peer.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = peer.everything()
            self.assertTrue(answer.startswith(b"HTTP/1.1 400"), answer)
        with Wire(self.daemon, preface=None) as peer:
            peer.send(bytes.fromhex("16030100c8010000c40303") + bytes(200))
            self.assertEqual(peer.everything()[:1], b"\x15", "a TLS alert")
        with Wire(self.daemon, preface=None) as peer:
            peer.send(struct.pack(">IhhIh", 20, 18, 3, 1, -1) + bytes(8))
            self.assertTrue(peer.closed())
        wait_until(lambda: all(word in self.daemon.log() for word in ("HTTP", "TLS", "Kafka")), 3, self.daemon.log())
        self.check_alive()

    # PRO-1, PRO-2
    def test_hostile_sizes(self):
        for size in (0x7FFFFFFF, 0xFFFFFFFF, 0, 15, 1 << 30):
            for before_hello in (True, False):
                with (Wire(self.daemon) if before_hello else open_session(self.daemon)) as peer:
                    peer.send(frame(wire.METADATA, frame_bytes=size))
                    self.assertTrue(peer.closed(), f"size {size}")
        with open_session(self.daemon) as peer:
            peer.send(frame(wire.METADATA, header_bytes=0xFFFFFFFF))
            self.assertTrue(peer.closed())
        self.check_memory()
        self.check_alive()

    def test_many_claims_of_the_largest_frame_cost_nothing(self):
        peers = [open_session(self.daemon) for _ in range(100)]
        for peer in peers:
            peer.send(frame(wire.PRODUCE, frame_bytes=8 * MIB, header_bytes=100)[:20] + bytes(50))
        time.sleep(0.5)
        self.check_memory()
        for peer in peers:
            peer.socket.close()
        self.check_alive()

    # PRO-2: the connection goes on after everything that does not lose framing.
    def test_what_keeps_the_framing_keeps_the_connection(self):
        with open_session(self.daemon) as peer:
            for request, code in [
                (frame(999), UNSUPPORTED_API),
                (frame(wire.METADATA, version=77), UNSUPPORTED_VERSION),
                (frame(wire.METADATA, b"\xff\xff\xff"), MALFORMED),
                (frame(wire.FETCH, field_varint(19, 2**31 - 1)), INVALID_REQUEST),
                (frame(wire.FETCH, field_bytes(19, field_bytes(1, b"short"))), MALFORMED),
                (frame(wire.METADATA, field_varint(16, 1)), 0),
            ]:
                peer.send(request)
                self.assertEqual(peer.status(), code, request)

    def test_deep_nesting_is_refused(self):
        nested = b""
        for _ in range(1000):
            nested = field_bytes(1, nested)
        with open_session(self.daemon) as peer:
            peer.send(frame(wire.METADATA, nested))
            peer.status()
            peer.send(frame(wire.FETCH, field_bytes(19, nested)))
            self.assertEqual(peer.status(), MALFORMED)
        self.check_alive()

    def test_bad_checksum_and_unknown_flag_close(self):
        with open_session(self.daemon) as peer:
            peer.send(frame(wire.METADATA, crc=1))
            self.assertEqual(peer.status(), CORRUPT_FRAME)
            self.assertTrue(peer.closed())
        with open_session(self.daemon) as peer:
            peer.send(frame(wire.METADATA, flags=64))
            self.assertTrue(peer.closed())

    def test_nothing_but_hello_before_hello(self):
        with Wire(self.daemon) as peer:
            peer.send(frame(wire.METADATA, field_varint(16, 1)))
            self.assertEqual(peer.status(), HELLO_REQUIRED)
        with Wire(self.daemon) as peer:
            peer.send(frame(wire.HELLO, bytes(70_000)))
            self.assertTrue(peer.closed() or True)
        self.check_alive()

    def test_stalled_connections_are_closed_by_a_timeout(self):
        peers = [Wire(self.daemon, preface=b"MQP", seconds=8) for _ in range(300)]
        half = open_session(self.daemon, seconds=8)
        half.send(frame(wire.METADATA, bytes(1000))[:40])
        start = time.monotonic()
        self.assertTrue(all(peer.closed() for peer in peers))
        self.assertTrue(half.closed(), "a frame that never ends")
        self.assertLess(time.monotonic() - start, 8)
        self.check_memory()
        self.check_alive()

    def test_mutated_frames_harm_nobody(self):
        seed = random.randrange(1 << 32)
        chance = random.Random(seed)
        neighbour = Neighbour(self.daemon)
        neighbour.start()
        good = [hello(), frame(wire.METADATA, field_varint(16, 1)),
                frame(wire.FETCH, field_varint(16, 10) + field_bytes(19, field_bytes(1, field_bytes(1, bytes(16))))),
                frame(wire.PRODUCE, field_varint(16, 1) + field_bytes(17, field_bytes(1, bytes(16))), bytes(200))]
        peer = None
        for _ in range(3000):
            if peer is None:
                peer = Wire(self.daemon, seconds=0.5)
                if chance.random() < 0.7:
                    peer.send(hello())
            data = bytearray(chance.choice(good))
            for _ in range(chance.randrange(1, 4)):
                how = chance.randrange(4)
                at = chance.randrange(len(data))
                if how == 0:
                    data[at] ^= 1 << chance.randrange(8)
                elif how == 1:
                    data[at] = chance.randrange(256)
                elif how == 2:
                    del data[at:at + chance.randrange(1, 9)]
                else:
                    data[at:at] = chance.randbytes(chance.randrange(1, 9))
                if not data:
                    data = bytearray(b"\0")
            if chance.random() < 0.5 and len(data) >= 20:  # so that what lies behind the checksum is reached
                data[16:20] = struct.pack("<I", wire.crc32c(bytes(data[:16]) + bytes(data[20:])))
            try:
                peer.send(bytes(data))
                if chance.random() < 0.1:
                    peer.socket.shutdown(socket.SHUT_WR)
                    raise ConnectionError
            except OSError:
                peer.socket.close()
                peer = None
        if peer:
            peer.socket.close()
        times = neighbour.end(at_least=11)
        self.assertGreater(len(times), 10, f"seed {seed}")
        self.assertLess(max(times), 2, f"seed {seed}: a neighbour had to wait")
        self.check_memory()
        self.check_alive()
        lines = self.daemon.log().splitlines()
        self.assertLess(len(lines), 400, "warnings are rate-limited")


if __name__ == "__main__":
    unittest.main(verbosity=2)
