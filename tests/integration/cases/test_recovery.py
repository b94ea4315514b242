"""Damage done to a stopped data directory, and retention on live topics."""

import json
import os
import pathlib
import random
import re
import shutil
import time
import unittest

from daemon import Case, wait_until


def log_files(broker):
    return sorted(broker.data.glob("*-*/*.log"))


def storage_warnings(log):
    return [line for line in log.splitlines() if re.search(r" (warning|error) storage:", line)]


class TornTail(Case):
    def topic_with_200_records(self, durability):
        """A broker that was killed, a copy of its data, the last segment's path, the records."""
        broker = self.broker().start()
        broker.create("t", "--partitions", "1", "-c", "durability=" + durability)
        chance = random.Random(1)
        values = [bytes(chance.randrange(97, 123) for _ in range(chance.randrange(100, 2000))) for _ in range(200)]
        # Each record in a batch of its own: sent one by one.
        for at in range(0, 198, 33):
            broker.ctl("produce", "t", "-z", "none", stdin=b"\n".join(values[at:at + 33]) + b"\n")
        for value in values[198:]:
            broker.ctl("produce", "t", "-z", "none", stdin=value + b"\n")
        broker.kill9()
        golden = broker.folder / "golden"
        shutil.copytree(broker.data, golden)
        return broker, golden, log_files(broker)[-1].relative_to(broker.data), values

    def start_with_cut(self, broker, golden, active, cut):
        broker.kill9()
        shutil.rmtree(broker.data)
        shutil.copytree(golden, broker.data)
        path = broker.data / active
        os.truncate(path, path.stat().st_size - cut)
        mark = len(broker.log())
        broker.start()
        return mark

    # REC-1, REC-3
    def test_every_cut_of_the_last_records_is_recovered(self):
        broker, golden, active, values = self.topic_with_200_records("memory")
        tail = len(values[198]) + len(values[199]) + 300
        cuts = list(range(1, 65, 9)) + list(range(64, tail, 401))
        for cut in cuts:
            with self.subTest(cut=cut):
                mark = self.start_with_cut(broker, golden, active, cut)
                state = broker.describe("t")["partitions"][0]
                self.assertFalse(state["note"])
                served = broker.ctl("consume", "t", "-e").raw.splitlines()
                self.assertEqual(served, values[:len(served)], "never a wrong record, never a hole")
                self.assertGreaterEqual(len(served), 198)
                self.assertLess(len(served), 200)
                self.assertEqual(state["log_end_offset"], len(served))
                warnings = storage_warnings(broker.log()[mark:])
                self.assertEqual(len(warnings), 1, warnings)
                self.assertRegex(warnings[0], r"-0 \(t\).*old end.*new end.*offset %d.*\d+ bytes dropped" % len(served))
                self.assertEqual(broker.ctl("produce", "t", "--print", "%o", stdin=b"new\n").out.strip(), str(len(served)))
                self.assertEqual(broker.stop(), 0)
                mark = len(broker.log())
                broker.start()
                self.assertEqual(storage_warnings(broker.log()[mark:]), [], "the second start is silent")
                again = broker.ctl("consume", "t", "-e").raw.splitlines()
                self.assertEqual(again, served + [b"new"])

    # REC-1
    def test_what_the_journal_holds_is_put_back_behind_every_cut(self):
        broker, golden, active, values = self.topic_with_200_records("disk")
        size = (golden / active).stat().st_size
        for cut in [1, 64, 1000, 3000, size // 2, size]:
            with self.subTest(cut=cut):
                self.start_with_cut(broker, golden, active, cut)
                self.assertEqual(broker.ctl("consume", "t", "-e").raw.splitlines(), values)
                self.assertEqual(broker.ctl("produce", "t", "--print", "%o", stdin=b"new\n").out.strip(), "200")
                self.assertEqual(broker.stop(), 0)
                broker.start()
                self.assertEqual(broker.ctl("consume", "t", "-e").raw.splitlines(), values + [b"new"])

    # LOG-5
    def test_deleted_or_damaged_indexes_change_no_answer(self):
        broker = self.broker().start()
        broker.create("t", "--partitions", "1", "--config", "segment.bytes=1MiB")
        lines = b"".join(b"%06d %s\n" % (n, b"x" * 500) for n in range(6000))
        self.assertEqual(broker.ctl("produce", "t", "-z", "none", stdin=lines).code, 0)
        self.assertEqual(broker.stop(), 0)
        caches = [path for path in broker.data.glob("*-*/*") if path.suffix not in (".log",) and re.match(r"\d{20}", path.name)]
        for path in caches[::2]:
            path.unlink()
        for path in caches[1::2]:
            data = bytearray(path.read_bytes())
            if data:
                data[len(data) // 2] ^= 0x55
            path.write_bytes(data)
        broker.start()
        self.assertEqual(broker.ctl("consume", "t", "-e").raw, lines)
        at = broker.ctl("consume", "t", "-o", "3000:3003").raw
        self.assertEqual(at, b"".join(lines.splitlines(keepends=True)[3000:3003]))

    # REC-1
    def test_damage_below_the_recovery_point_is_named_never_cut(self):
        broker = self.broker().start()
        broker.create("bad", "--partitions", "1")
        broker.create("good", "--partitions", "1")
        for topic in ("bad", "good"):
            for n in range(5):
                broker.ctl("produce", topic, "-z", "none", stdin=b"value %d\n" % n * 50)
        self.assertEqual(broker.stop(), 0)
        partition = [path for path in log_files(broker)
                     if any("bad" in file.read_text(errors="replace") for file in path.parent.iterdir()
                            if file.suffix not in (".log", ".index") and file.is_file())]
        self.assertEqual(len(partition), 1, "the partition's folder names its topic")
        data = bytearray(partition[0].read_bytes())
        data[len(data) // 3] ^= 1
        partition[0].write_bytes(data)
        # Not in the page cache any more: what comes from the disk is verified by the broker, the rest by its reader.
        with open(partition[0], "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        broker.start()
        done = broker.ctl("--timeout", "3s", "consume", "bad", "-e")
        self.assertNotEqual(done.code, 0, "damaged bytes are never served as good")
        self.assertIn("CORRUPT", done.err)
        self.assertEqual(broker.ctl("consume", "good", "-e").code, 0)
        # What the reader met is told to whoever asks how the cluster is.
        place = partition[0].name + " cannot be read at byte"
        self.assertIn("damaged: " + place, broker.describe("bad")["partitions"][0]["note"])
        self.assertEqual(broker.describe("good")["partitions"][0]["note"], "")
        status = json.loads(broker.ctl("status", "-o", "json").out)
        self.assertEqual(status["state"], "DEGRADED")
        self.assertEqual(status["items"][0]["partitions_damaged"], 1)
        self.assertEqual(status["items"][0]["partitions_not_serving"], 0)
        named = [line for line in status["items"][0]["warnings"] if "partition bad-0 is damaged: " + place in line]
        self.assertEqual(len(named), 1, status)
        self.assertIn("bad-0", broker.ctl("status").out)
        broker.kill9()
        self.assertEqual(partition[0].read_bytes(), bytes(data), "nothing was cut")
        # A start that has to read the log names it too.
        broker.start()
        self.assertEqual(broker.ctl("consume", "good", "-e").code, 0)
        self.assertNotEqual(broker.ctl("--timeout", "3s", "consume", "bad", "-e").code, 0)
        broker.kill9()
        self.assertEqual(partition[0].read_bytes(), bytes(data), "nothing was cut")


class Retention(Case):
    # an idle topic's last segment rolls and goes.
    def test_an_idle_topic_becomes_empty(self):
        broker = self.broker().start()
        broker.create("t", "--config", "retention.age=3s", "--config", "segment.bytes=1GiB")
        broker.ctl("produce", "t", stdin=b"x\n" * 10)

        def empty():
            part = broker.describe("t")["partitions"][0]
            return part["log_start_offset"] == part["log_end_offset"] == 10

        wait_until(empty, 40, "log start = log end")
        self.assertEqual(broker.ctl("produce", "t", "--print", "%o", stdin=b"y\n").out.strip(), "10")
        lines = [line for line in broker.log().splitlines() if "log start is now 10" in line]
        self.assertEqual(len(lines), 1, broker.log())
        self.assertIn("-0 (t)", lines[0])

    # LOG-10: a limit smaller than one segment never takes the newest record.
    def test_the_newest_record_stays_readable_under_a_size_limit(self):
        broker = self.broker().start()
        broker.create("t", "--config", "retention.bytes=1MiB", "--config", "segment.bytes=4MiB")
        sent = 0
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            sent += 1000
            done = broker.ctl("produce", "t", "-z", "none", stdin=(b"%d " % sent + b"x" * 1000 + b"\n") * 1000)
            self.assertEqual(done.code, 0, done.err)
            newest = broker.ctl("consume", "t", "-o", "-1", "-e")
            self.assertEqual(newest.code, 0, newest.err)
            self.assertTrue(newest.out.startswith(f"{sent} "), newest.out[:40])
        wait_until(lambda: broker.describe("t")["partitions"][0]["log_start_offset"] > 0, 30, "old segments go")

    # age is kept on a busy topic, without a restart.
    def test_a_busy_topic_keeps_its_age_limit(self):
        broker = self.broker().start()
        broker.create("t", "--config", "retention.age=3s", "--config", "segment.bytes=1MiB")
        oldest_seen = 0
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            stamp = b"%d " % int(time.time())
            broker.ctl("produce", "t", "-z", "none", stdin=(stamp + b"x" * 1000 + b"\n") * 200)
            first = broker.ctl("consume", "t", "-n", "1", "-e")
            if first.out:
                oldest_seen = max(oldest_seen, time.time() - int(first.out.split()[0]))
            time.sleep(0.2)
        # retention + a roll + two check intervals
        self.assertLess(oldest_seen, 3 + 3 + 2 * 10 + 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
