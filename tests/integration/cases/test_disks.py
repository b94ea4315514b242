"""One broker on several data directories: where partitions go, and what a missing, foreign or unreadable one costs."""

import json
import os
import pathlib
import re
import shutil
import tempfile
import time
import unittest

from daemon import Case, ctl, wait_until


def second_disk(path):
    return f'\n[[storage.disk]]\npath = "{path}"\n'


class TwoDisks(Case):
    def setUp(self):
        super().setUp()
        folder = pathlib.Path(tempfile.mkdtemp(prefix="mq-disk-"))
        self.addCleanup(shutil.rmtree, folder, True)
        (folder / "mount").mkdir()
        self.other = folder / "mount" / "b"
        self.one = self.broker(extra=second_disk(self.other))

    def disks(self):
        done = self.one.ctl("broker", "disks", "-o", "json")
        self.assertEqual(done.code, 0, done.err)
        return {item["path"]: item for item in json.loads(done.out)["items"]}

    def logs_on(self, path):
        return sorted(entry.name for entry in pathlib.Path(path).glob("*-*") if entry.is_dir())

    def fill(self, topic="t", partitions=6):
        self.one.create(topic, "--partitions", str(partitions))
        for partition in range(partitions):
            done = self.one.ctl("produce", topic, "-p", str(partition), stdin=b"first %d\n" % partition)
            self.assertEqual(done.code, 0, done.err)

    def read(self, topic, partition):
        return self.one.ctl("--timeout", "5s", "consume", topic, "-p", str(partition), "-e")

    def test_partitions_spread_and_stay_over_a_restart(self):
        self.one.start()
        self.fill()
        first, second = self.logs_on(self.one.data), self.logs_on(self.other)
        self.assertEqual((len(first), len(second)), (3, 3))
        disks = self.disks()
        self.assertEqual([disks[str(path)]["partitions"] for path in (self.one.data, self.other)], [3, 3])
        self.assertEqual({disk["state"] for disk in disks.values()}, {"ok"})
        table = self.one.ctl("broker", "disks").out
        self.assertIn(str(self.other), table)
        for stop in (self.one.stop, self.one.kill9):
            stop()
            self.one.start()
            self.assertEqual((self.logs_on(self.one.data), self.logs_on(self.other)), (first, second))
            for partition in range(6):
                self.assertEqual(self.read("t", partition).out, f"first {partition}\n")

    def test_a_missing_directory_takes_only_its_partitions(self):
        self.one.start()
        self.fill()
        self.one.create("gone", "--partitions", "4")
        on_second = {int(name.rsplit("-", 1)[1]) for name in self.logs_on(self.other)
                     if name.startswith(self.one.describe("t")["id"])}
        self.assertEqual(len(on_second), 3)
        self.assertEqual(self.one.stop(), 0)
        away = self.other.parent.parent / "away"
        self.other.parent.rename(away)
        self.one.start()
        for partition in self.one.describe("t")["partitions"]:
            number = partition["id"]
            done = self.read("t", number)
            if number in on_second:
                self.assertNotEqual(partition["note"], "")
                self.assertNotEqual(done.code, 0)
                self.assertIn("PARTITION_OFFLINE", done.err)
            else:
                self.assertEqual(partition["note"], "")
                self.assertEqual(done.out, f"first {number}\n")
        status = json.loads(self.one.ctl("status", "-o", "json").out)
        self.assertEqual(status["state"], "DEGRADED")
        self.assertEqual(self.disks()[str(self.other)]["state"], "failed")
        self.assertRegex(self.one.log(), r"partitions are offline.*is missing")
        # A topic that is deleted meanwhile is gone; its files over there go when the disk is back. Other changes go on.
        self.assertEqual(self.one.ctl("topic", "delete", "gone", "--yes").code, 0)
        wait_until(lambda: "its logs not yet" in self.one.log(), 10, "the deletion is put off")
        self.one.create("new", "--partitions", "1")
        self.assertEqual(self.one.ctl("produce", "new", stdin=b"x\n").code, 0)
        self.assertEqual(self.one.stop(), 0)
        away.rename(self.other.parent)
        self.one.start()
        for partition in range(6):
            self.assertEqual(self.read("t", partition).out, f"first {partition}\n")
        wait_until(lambda: len(self.logs_on(self.other)) == 3, 20, "what was left of the deleted topic goes")
        self.assertFalse((self.other / "unknown").exists(), "it is no stranger's")
        status = json.loads(self.one.ctl("status", "-o", "json").out)
        self.assertEqual((status["state"], status["troubles"]), ("OK", []))

    def test_a_directory_that_cannot_be_opened_is_named(self):
        self.one.start()
        self.fill()
        self.assertEqual(self.one.stop(), 0)
        shutil.rmtree(self.other)
        self.other.write_text("not a directory")
        self.one.start()
        disks = self.disks()
        self.assertEqual(disks[str(self.other)]["state"], "failed")
        self.assertIn(str(self.other), disks[str(self.other)]["reason"])
        self.assertEqual(disks[str(self.one.data)]["state"], "ok")
        self.assertIn("failed", self.one.ctl("broker", "disks").out)
        self.assertIn(f"disk {self.other} is failed", self.one.ctl("status").out)

    def test_a_directory_of_another_broker_ends_the_start(self):
        stranger = self.broker(broker_id=7, data=str(self.other)).start()
        self.assertEqual(stranger.stop(), 0)
        code, text = self.one.run_to_end()
        self.assertEqual(code, 78, text)
        self.assertIn("belongs to broker 7", text)
        self.assertFalse((self.one.data / "identity").exists(), "nothing was written into the other one")

    def test_offline_tools_take_several_directories(self):
        self.one.start()
        self.fill()
        both = (str(self.one.data), str(self.other))
        found = ctl("log", "segments", *both, "-o", "json")
        self.assertEqual(found.code, 0, found.err)
        self.assertEqual(len(json.loads(found.out)["items"]), 6)
        self.assertEqual(ctl("log", "verify", *both).code, 0)
        refused = ctl("log", "index-rebuild", *both)
        self.assertNotEqual(refused.code, 0)
        self.assertIn("DIRECTORY_LOCKED", refused.err)
        self.assertIn(str(self.one.process.pid), refused.err)
        self.assertEqual(self.one.stop(), 0)
        self.assertEqual(ctl("log", "index-rebuild", *both).code, 0)
        found = ctl("log", "find", *both, "--offset", "0", "-o", "json")
        self.assertEqual(len(json.loads(found.out)["items"]), 6)
        found = ctl("log", "find", *both, "--time", "-1h", "-o", "json")
        self.assertEqual(len(json.loads(found.out)["items"]), 6)
        self.one.start()
        done = self.one.ctl("produce", "t", "-K", ":", stdin=b"needle:in\n")
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(self.one.stop(), 0)
        found = ctl("log", "find", *both, "--key", "needle", "-o", "json")
        self.assertEqual(len(json.loads(found.out)["items"]), 1)
        self.assertEqual(ctl("log", "verify", *both).code, 0)


class Strangers(Case):
    # REC-9
    def test_what_is_not_ours_is_left_alone_with_one_warning(self):
        one = self.broker().start()
        one.create("t", "--partitions", "1")
        one.ctl("produce", "t", stdin=b"x\n")
        self.assertEqual(one.stop(), 0)
        known = next(one.data.glob("*-0"))
        (one.data / "lost+found").mkdir(mode=0)
        (one.data / ".snapshot").mkdir()
        (one.data / "x~").write_text("editor")
        (one.data / "directory").mkdir()
        (one.data / ("0" * 32 + "-0")).write_text("a file named like a partition")
        unknown = one.data / ("f" * 32 + "-3")
        unknown.mkdir()
        (unknown / ("0" * 20 + ".log")).write_bytes(b"somebody's")
        mark = len(one.log())
        one.start()
        warnings = [line for line in one.log()[mark:].splitlines() if "left alone" in line]
        self.assertEqual(len(warnings), 1, warnings)
        for name in ("lost+found", ".snapshot", "x~", "directory", "0" * 32 + "-0"):
            self.assertIn(name, warnings[0])
            self.assertTrue((one.data / name).exists())
        kept = one.data / "unknown" / unknown.name
        self.assertEqual((kept / ("0" * 20 + ".log")).read_bytes(), b"somebody's")
        self.assertFalse(unknown.exists())
        self.assertRegex(one.log()[mark:], r"does not know " + unknown.name)
        self.assertTrue(known.is_dir())
        self.assertEqual(one.ctl("consume", "t", "-e").out, "x\n")
        # Its lock outlives nothing: a second process is refused, one after a kill -9 is not.
        second = self.broker(data=str(one.data))
        code, text = second.run_to_end()
        self.assertNotEqual(code, 0)
        self.assertIn(f"pid {one.process.pid}", text)
        one.kill9()
        one.start()
        self.assertEqual(one.ctl("consume", "t", "-e").out, "x\n")
        os.chmod(one.data / "lost+found", 0o700)


class Recovery(Case):
    def test_an_unclean_start_reads_from_the_bound_on_and_says_so(self):
        one = self.broker().start()
        one.create("t", "--partitions", "2", "--config", "segment.bytes=1MiB")
        lines = b"".join(b"%06d %s\n" % (n, b"x" * 990) for n in range(8000))
        self.assertEqual(one.ctl("produce", "t", "-z", "none", stdin=lines).code, 0)
        time.sleep(6)  # a checkpoint
        self.assertEqual(one.ctl("produce", "t", stdin=b"one more\n").code, 0)
        one.kill9()
        mark = len(one.log())
        one.start()
        read = re.search(r"\((\d+) bytes of log read, (\d+) of journal", one.log()[mark:])
        self.assertTrue(read, one.log()[mark:])
        self.assertLess(int(read.group(1)), 3 << 20, "not the 8 MB that were synced")
        item = json.loads(one.ctl("status", "-o", "json").out)["items"][0]
        self.assertEqual(item["partitions_recovering"], 0)
        self.assertGreater(item["recovery_bytes_read"], 0)
        self.assertEqual(one.stop(), 0)
        mark = len(one.log())
        one.start()
        self.assertNotIn("bytes of log read", one.log()[mark:], "a clean start reads none")
        out = one.ctl("consume", "t", "-e").raw
        self.assertEqual(len(out.splitlines()), 8001)


if __name__ == "__main__":
    unittest.main(verbosity=2)
