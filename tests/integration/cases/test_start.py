"""Starts that must be refused, in one clear line and before anything is written, and strangers in
the data directory."""

import os
import re
import unittest

from daemon import Case, Broker, ctl, free_port, wait_until
from wire import crc32c

CONFIG_EXIT = 78
NEWER_FORMAT = ("error broker: data directory DATA was written by a newer mq: its identity file has an unknown format version "
                "(WRONG_DIRECTORY)")


def snapshot(folder):
    """Every file below `folder` with its bytes, but for the lock's pid."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "lock" and not path.name.startswith("metadata.db"):
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


class Refusals(Case):
    def refused(self, broker, pattern):
        code, text = broker.run_to_end()
        self.assertNotEqual(code, 0, text)
        lines = [line for line in text.splitlines() if re.search(pattern, line)]
        self.assertEqual(len(lines), 1, f"one line matching {pattern!r} in:\n{text}")
        return code, lines[0]

    # REC-7
    def test_second_broker_on_a_data_directory_names_the_holder(self):
        first = self.broker().start()
        second = self.broker(folder=first.folder, data=first.data)
        _, line = self.refused(second, "DIRECTORY_LOCKED")
        self.assertIn(f"pid {first.process.pid}", line)
        self.assertIn(str(first.data), line)
        self.assertEqual(first.stop(), 0)
        second.start()
        self.assertEqual(second.stop(), 0)

    # A killed process holds its lock until the last of its threads has ended.
    def test_a_lock_that_is_about_to_be_free_is_waited_for(self):
        first = self.broker().start()
        second = self.broker(folder=first.folder, data=first.data)
        second.launch()
        waits = f"in use by pid {first.process.pid}: waiting for that process to end"
        wait_until(lambda: waits in second.log(), 4, "it waits")
        first.kill9()
        wait_until(lambda: " ready in " in second.log(), 20, "it starts")
        self.assertEqual(second.log().count(waits), 1)
        self.assertEqual(second.stop(), 0)

    # REC-7
    def test_data_directory_of_another_broker_is_refused_unwritten(self):
        first = self.broker().start()
        first.create("t")
        first.stop()
        before = snapshot(first.data)
        other = self.broker(folder=first.folder, data=first.data, broker_id=2)
        _, line = self.refused(other, str(first.data))
        self.assertRegex(line, r"broker 1")
        self.assertEqual(snapshot(first.data), before)
        first.start()

    # REC-7
    def test_data_directory_of_a_newer_format_is_refused_unwritten(self):
        first = self.broker().start()
        first.create("t")
        first.stop()
        # A sealed file: magic, u32 version, u32 body bytes, u32 CRC32C of these and the body.
        identity = first.data / "identity"
        data = bytearray(identity.read_bytes())
        data[8:12] = (int.from_bytes(data[8:12], "little") + 1).to_bytes(4, "little")
        data[16:20] = crc32c(bytes(data[:16] + data[20:])).to_bytes(4, "little")
        identity.write_bytes(data)
        everything = {path: path.read_bytes() for path in first.data.rglob("*") if path.is_file() and path.name != "lock"}
        code, line = self.refused(first, "format version")
        self.assertEqual(code, CONFIG_EXIT)
        self.assertEqual(re.sub(r"^\S+ ", "", line).replace(str(first.data), "DATA"), NEWER_FORMAT)
        now = {path: path.read_bytes() for path in first.data.rglob("*") if path.is_file() and path.name != "lock"}
        self.assertEqual(now, everything, "nothing is written, not in the metadata either")

    def test_port_in_use(self):
        first = self.broker().start()
        second = self.broker(port=first.port)
        _, line = self.refused(second, r"another process listens there")
        self.assertIn(first.address, line)
        self.assertFalse(second.data.exists() and any(p.name.startswith("metadata") for p in second.data.iterdir()),
                         "nothing was written but the lock")

    def test_advertised_address_that_means_everyone_is_refused(self):
        for advertised in ("0.0.0.0:9500", "[::]:9500", ""):
            broker = self.broker(advertised=advertised or " ")
            code, text = broker.run_to_end()
            self.assertEqual(code, CONFIG_EXIT, text)
            self.assertRegex(text, r"broker-1-\d+\.toml:\d+:\d+: listener\.clients\.advertised")


class Strangers(Case):
    def test_strangers_in_the_data_directory_are_left_alone(self):
        broker = self.broker().start()
        broker.create("t")
        broker.stop()
        (broker.data / "lost+found").mkdir(mode=0o700)
        (broker.data / ".snapshot").mkdir()
        (broker.data / "x~").write_text("backup")
        (broker.data / "unknown-directory").mkdir()
        (broker.data / "unknown-directory" / "note").write_text("keep me")
        (broker.data / ("0" * 32 + "-0")).write_text("a file named like a partition")
        broker.start()
        self.assertEqual(broker.ctl("produce", "t", stdin=b"still works\n").code, 0)
        self.assertEqual(broker.stop(), 0)
        self.assertTrue((broker.data / "lost+found").is_dir())
        self.assertTrue((broker.data / ".snapshot").is_dir())
        self.assertEqual((broker.data / "x~").read_text(), "backup")
        self.assertEqual((broker.data / "unknown-directory" / "note").read_text(), "keep me")
        self.assertEqual((broker.data / ("0" * 32 + "-0")).read_text(), "a file named like a partition")

    # REC-9
    def test_a_partition_that_the_metadata_does_not_know_is_kept_aside(self):
        broker = self.broker().start()
        broker.stop()
        stranger = broker.data / ("ab" * 16 + "-3")
        stranger.mkdir()
        (stranger / ("0" * 20 + ".log")).write_bytes(b"somebody's data")
        broker.start()
        self.assertIn("ab" * 16 + "-3", broker.log())
        broker.stop()
        kept = list(broker.data.rglob("ab" * 16 + "-3/" + "0" * 20 + ".log"))
        self.assertEqual([path.read_bytes() for path in kept], [b"somebody's data"])

    # a lock file left behind by kill -9 does not block.
    def test_a_stale_lock_does_not_block(self):
        broker = self.broker().start()
        broker.kill9()
        broker.start()
        self.assertEqual(broker.stop(), 0)


class Ends(Case):
    def test_sigterm_ends_with_0_and_the_next_start_reads_nothing_back(self):
        broker = self.broker().start()
        broker.create("t")
        broker.ctl("produce", "t", stdin=b"a\nb\n")
        self.assertEqual(broker.stop(), 0)
        broker.start()
        self.assertEqual(broker.ctl("consume", "t", "-e").out, "a\nb\n")

    def test_a_broker_that_goes_away_is_one_clear_error(self):
        broker = self.broker().start()
        broker.kill9()
        done = broker.ctl("--timeout", "2s", "topic", "list")
        self.assertEqual(done.code, 6, done.err)
        self.assertEqual(done.out, "")
        lines = done.err.splitlines()
        self.assertEqual(len(lines), 3, done.err)
        self.assertRegex(lines[0], r"^error: .*\[UNREACHABLE\]$")
        self.assertRegex(lines[1], rf"^  why:  .*127\.0\.0\.1:{broker.port}.*refused")
        self.assertRegex(lines[2], r"^  try:  ")

    def test_an_unreachable_advertised_address_names_both_addresses(self):
        dead = free_port()
        broker = self.broker(advertised=f"127.0.0.1:{dead}").start()
        done = broker.ctl("--timeout", "3s", "topic", "create", "t")
        self.assertNotEqual(done.code, 0)
        self.assertIn(f"127.0.0.1:{dead}", done.err)
        self.assertIn(broker.address, done.err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
