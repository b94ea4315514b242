"""Disks that are full, slow, or fail one call, and calls that are interrupted, under load. Needs root and strace."""

import os
import pathlib
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import BIN, wait_until  # noqa: E402
from fault_case import SESSION_SECONDS, FaultCase, main  # noqa: E402
from nemesis import back, full_disks, injected, killed  # noqa: E402

SHORT_WRITES = os.environ.get("MQ_SHORT_WRITES_LIBRARY", str(BIN.parent / "tests/integration/faults/libshort_writes.so"))


class Full(FaultCase):
    DISKS = ("ext4", 256)
    EXPECTED_ERRORS = ("is full",)

    def is_full(self, number):
        return f"disk {self.nodes[number].data} is full" in self.ctl("status").out or "STORAGE_FULL" in self.nodes[number].log()

    def test_of_one_broker(self):
        self.begin_load()
        for number in (1, 2):
            self.say(f"the disk of broker {number} is full")
            with full_disks(self, number):
                time.sleep(8)
            self.writes_go_on()
            self.whole_again()
        self.finish()

    def test_of_all_brokers(self):
        self.begin_load()
        self.say("all disks are full")
        with full_disks(self, 1, 2, 3):
            time.sleep(8)
            for node in self.nodes.values():
                self.assertIsNone(node.process.poll(), "nobody ends for it")
        began = time.monotonic()
        self.writes_go_on()
        self.say(f"writing goes on {time.monotonic() - began:.1f} s after there is space")
        self.finish()


class Failed(FaultCase):
    """One call fails once: the disk is offline until its broker starts again, and nothing of it counts."""

    DISKS = ("ext4", 512)
    EXPECTED_ERRORS = ("is offline", "file: ", "no clean stop", "following broker .* ends", "is left out", "cannot be read at")

    def fails(self, number, calls, what="error=EIO:when=5"):
        self.begin_load()
        with injected(self, number, calls, what):
            wait_until(lambda: "is offline" in self.nodes[number].log(), 20, "the disk is offline")
        self.say(f"{calls} failed on broker {number}")
        wait_until(lambda: self.led_by(number) == 0 and self.all_led(), 20, "others lead")
        self.writes_go_on()
        time.sleep(3)
        self.assertEqual(self.nodes[number].log().count("is offline:"), 1, "once")
        node = self.nodes[number]
        node.stop()
        back(self, [number])
        self.finish()

    def test_fdatasync(self):
        self.fails(1, "fdatasync")

    def test_pwritev(self):
        self.fails(2, "pwritev")

    def test_fallocate(self):
        self.fails(3, "fallocate", "error=EIO:when=1+")

    def test_rename(self):
        self.fails(1, "rename,renameat,renameat2", "error=EIO:when=1")


class Odd(FaultCase):
    def test_calls_that_are_interrupted(self):
        self.begin_load()
        # A sync that is interrupted is one that failed: what it wrote is not known.
        for number, calls, what in ((3, "preadv2", "error=EINTR:when=1+3"), (2, "pwritev", "error=EINTR:when=1+3")):
            self.say(f"{calls} of broker {number}: {what}")
            with injected(self, number, calls, what):
                time.sleep(4)
            self.writes_go_on()
        self.finish(longest=SESSION_SECONDS + 3)


class ShortWrites(FaultCase):
    """Of every third write a part reaches the file, and the next call is interrupted."""

    def broker(self, extra="", **options):
        broker = super().broker(extra, **options)
        count = broker.folder / "short_writes"
        count.write_bytes(bytes(8))
        broker.environment |= {"LD_PRELOAD": SHORT_WRITES, "MQ_SHORT_WRITES": "3", "MQ_SHORT_WRITES_FILE": str(count)}
        return broker

    def cut_short(self):
        """How many writes of each broker were, so far."""
        return [struct.unpack("=q", (node.folder / "short_writes").read_bytes())[0] for node in self.nodes.values()]

    def test_every_record_is_whole(self):
        self.begin_load()
        time.sleep(8)
        with killed(self, 1):
            pass
        self.whole_again()
        with killed(self, 1, 2, 3):
            pass
        self.whole_again()
        self.finish()
        self.say(f"writes that were cut short: {self.cut_short()}")
        self.assertGreater(min(self.cut_short()), 100, "the library takes the place of pwritev")


class Slow(FaultCase):
    def slowed(self, number, delay_us, seconds, calls="fdatasync"):
        self.say(f"each {calls} of broker {number} takes {delay_us / 1e6:.1f} s longer")
        before = self.load.acknowledged()
        with injected(self, number, calls, f"delay_enter={delay_us}"):
            time.sleep(seconds)
            self.say(f"{self.load.acknowledged() - before} records acknowledged meanwhile")

    def test_a_disk_that_takes_a_tenth_of_a_second_and_one_second(self):
        self.begin_load()
        for number, delay in ((1, 100_000), (2, 100_000), (3, 1_000_000)):
            self.slowed(number, delay, 8)
            self.whole_again()
        self.finish()

    def test_a_disk_that_stands_still_for_long(self):
        self.begin_load()
        self.slowed(1, 25_000_000, 27)
        self.whole_again(60)
        self.finish()


if __name__ == "__main__":
    main(needs_disks=True, needs=["strace"])
