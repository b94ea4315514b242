"""A broker whose disk is full, has no inode left, or fails: small file systems of its own, mounted from files. Needs root."""

import json
import os
import pathlib
import shutil
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import Case, wait_until  # noqa: E402
from small_disk import SmallDisk  # noqa: E402

SKIPPED = 77


class OnSmallDisks(Case):
    kind = "ext4"

    def setUp(self):
        super().setUp()
        self.small = []

    def tearDown(self):
        super().tearDown()
        for disk in self.small:
            disk.end()

    def disk(self, mebibytes, *options):
        disk = SmallDisk(self.kind, mebibytes, *options)
        self.small.append(disk)
        return disk

    def state(self, broker):
        done = broker.ctl("broker", "disks", "-o", "json")
        self.assertEqual(done.code, 0, done.err)
        return json.loads(done.out)["items"]

    def produce(self, broker, data, *arguments):
        return broker.ctl("--timeout", "3s", "produce", "t", "-z", "none", *arguments, stdin=data)


class FullDisk(OnSmallDisks):
    size = 128

    def begin(self):
        self.mount = self.disk(self.size)
        one = self.broker(data=str(self.mount.path / "data")).start()
        one.create("t", "--partitions", "1", "--config", "segment.bytes=1MiB")
        one.create("other", "--partitions", "1")
        wait_until(lambda: len(list((one.data / "reserve").glob("*"))) == 8, 10, "the reserve is kept")
        return one

    def write_until_refused(self, one):
        """Values that were acknowledged."""
        sent = 0
        for _ in range(300):
            values = b"".join(b"%06d %s\n" % (sent + n, b"v" * 990) for n in range(2000))
            done = self.produce(one, values, "--print", "%o")
            acknowledged = len(done.out.split())
            sent += acknowledged
            if done.code != 0:
                self.assertIn("STORAGE_FULL", done.err)
                return sent
        self.fail("it takes everything")

    def expect_all(self, one, sent):
        got = one.ctl("consume", "t", "-e", seconds=60).raw.splitlines()
        self.assertGreaterEqual(len(got), sent)
        for number in range(sent):
            self.assertTrue(got[number].startswith(b"%06d " % number), (number, got[number][:20]))
        return len(got)

    # REC-6
    def test_writes_stop_early_and_go_on_by_themselves(self):
        one = self.begin()
        sent = self.write_until_refused(one)
        self.assertGreater(self.mount.free(), 1 << 20, "before the last byte")
        self.assertEqual(self.state(one)[0]["state"], "full")
        self.assertIn("is full", one.ctl("status").out)
        self.expect_all(one, sent)
        # Not a byte is free: what takes a little to give much back still works.
        self.mount.fill()
        self.assertEqual(one.ctl("topic", "delete", "other", "--yes").code, 0)
        before = one.describe("t")["partitions"][0]
        trimmed = one.ctl("topic", "trim", "t", "-p", "0", "--to", str(before["log_end_offset"] // 2), "--yes")
        self.assertEqual(trimmed.code, 0, trimmed.err)
        wait_until(lambda: self.mount.free() > 8 << 20, 20, "segments go")
        self.expect_half(one, before["log_end_offset"] // 2)
        self.mount.give_back()
        wait_until(lambda: self.state(one)[0]["state"] == "ok", 30, "there is space again")
        self.assertEqual(self.produce(one, b"after\n").code, 0)
        self.assertEqual(one.ctl("consume", "t", "-o", "-1", "-e").out, "after\n")
        wait_until(lambda: len(list((one.data / "reserve").glob("*"))) == 8, 20, "the reserve is kept again")
        self.assertEqual(one.stop(), 0)

    def expect_half(self, one, start):
        first = one.ctl("consume", "t", "-n", "1", "-e").out
        self.assertTrue(first.startswith(f"{start:06d} "), first[:20])

    def test_it_starts_without_a_free_byte(self):
        one = self.begin()
        sent = self.write_until_refused(one)
        one.kill9()
        self.mount.fill()
        self.assertLess(self.mount.free(), 65536)  # XFS keeps some blocks for itself
        one.start()
        self.expect_all(one, sent)
        refused = self.produce(one, b"x\n")
        self.assertNotEqual(refused.code, 0)
        self.assertIn("STORAGE_FULL", refused.err)
        self.mount.fill()
        for topic in ("other", "t"):
            done = one.ctl("topic", "delete", topic, "--yes")
            self.assertEqual(done.code, 0, done.err)
        wait_until(lambda: self.mount.free() > 20 << 20, 20, "the topic's files go")
        one.create("t", "--partitions", "1") if self.state(one)[0]["state"] == "ok" else None
        self.mount.give_back()
        wait_until(lambda: self.state(one)[0]["state"] == "ok", 30, "there is space again")
        self.assertEqual(one.stop(), 0)
        one.start()

    def test_retention_goes_first_on_a_full_disk(self):
        self.mount = self.disk(self.size)
        one = self.broker(data=str(self.mount.path / "data")).start()
        one.create("t", "--partitions", "1", "--config", "segment.bytes=1MiB", "--config", "retention.age=20s")
        self.write_until_refused(one)
        one.kill9()
        self.mount.fill()
        time.sleep(20)
        one.start()
        wait_until(lambda: self.mount.free() > 30 << 20, 40, "old segments go")
        wait_until(lambda: self.state(one)[0]["state"] == "ok", 30, "writing goes on")
        self.assertEqual(self.produce(one, b"x\n").code, 0)


class FullXfs(FullDisk):
    kind = "xfs"
    size = 320


class NoInodes(OnSmallDisks):
    def test_it_starts_and_can_be_cleaned_up(self):
        mount = self.disk(128, "-N", "256")
        one = self.broker(data=str(mount.path / "data")).start()
        one.create("t", "--partitions", "1")
        self.assertEqual(self.produce(one, b"kept\n").code, 0)
        wait_until(lambda: len(list((one.data / "reserve").glob("*"))) == 8, 10, "the reserve is kept")
        one.kill9()
        mount.fill_inodes()
        one.start()
        self.assertEqual(one.ctl("consume", "t", "-e").out, "kept\n")
        self.assertEqual(self.produce(one, b"and more\n").code, 0, "an open segment needs none")
        mount.fill_inodes()
        refused = one.ctl("topic", "create", "u", "--partitions", "1")
        self.assertNotEqual(refused.code, 0)
        self.assertEqual(one.ctl("topic", "delete", "t", "--yes").code, 0)
        mount.give_back()
        wait_until(lambda: one.ctl("topic", "create", "u", "--partitions", "1").code == 0, 30, "it goes on")
        self.assertEqual(one.stop(), 0)
        one.start()


class FailedDisk(OnSmallDisks):
    # REC-5
    def test_a_disk_that_fails_takes_only_its_partitions(self):
        good, bad = self.disk(128), self.disk(128)
        one = self.broker(data=str(good.path / "data"), extra=f'\n[[storage.disk]]\npath = "{bad.path / "data"}"\n').start()
        one.create("t", "--partitions", "4")
        for partition in range(4):
            self.assertEqual(self.produce(one, b"first %d\n" % partition, "-p", str(partition)).code, 0)
        lost = {int(path.name.rsplit("-", 1)[1]) for path in (bad.path / "data").glob("*-*") if path.is_dir()}
        self.assertEqual(len(lost), 2)
        bad.shut_down()
        for partition in range(4):
            done = self.produce(one, b"second %d\n" % partition, "-p", str(partition))
            self.assertEqual(done.code == 0, partition not in lost, done.err)
            if partition in lost:
                self.assertIn("STORAGE_FAILED", done.err)
        for partition in range(4):
            read = one.ctl("--timeout", "3s", "consume", "t", "-p", str(partition), "-e")
            if partition in lost:
                self.assertNotEqual(read.code, 0)
            else:
                self.assertEqual(read.out, f"first {partition}\nsecond {partition}\n")
        disks = {item["path"]: item for item in self.state(one)}
        failed = disks[str(bad.path / "data")]
        self.assertEqual(failed["state"], "failed")
        self.assertIn(str(bad.path), failed["reason"])
        self.assertEqual(disks[str(one.data)]["state"], "ok")
        status = one.ctl("status").out
        self.assertIn(f"disk {bad.path / 'data'} is failed", status)
        for partition in one.describe("t")["partitions"]:
            self.assertEqual(partition["note"] != "", partition["id"] in lost)
        # New ones go where it works, and deletions do not get stuck.
        one.create("u", "--partitions", "2")
        self.assertEqual(one.ctl("produce", "u", stdin=b"x\n").code, 0)
        self.assertEqual(one.ctl("topic", "delete", "t", "--yes").code, 0)
        one.create("t", "--partitions", "1")
        self.assertEqual(self.produce(one, b"new\n").code, 0)
        self.assertEqual(len([line for line in one.log().splitlines() if "is offline:" in line]), 1, one.log())


if __name__ == "__main__":
    needed = ["mkfs.ext4", "mkfs.xfs", "xfs_io", "mount", "unshare"]
    if os.geteuid() != 0 or any(shutil.which(name) is None for name in needed):
        print("needs root, mkfs.ext4, mkfs.xfs, xfs_io and unshare")
        sys.exit(SKIPPED)
    if os.environ.get("MQ_OWN_MOUNTS") != "1":
        os.environ["MQ_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, "-B", *sys.argv])
    unittest.main(verbosity=2)
