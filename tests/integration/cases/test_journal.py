"""The journal of a disk in a folder of its own: what is there after a kill, and what a missing, another disk's or failing one costs."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from daemon import Case, ctl, wait_until


class JournalElsewhere(Case):
    def setUp(self):
        super().setUp()
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="mq-journal-")) / "j"
        self.addCleanup(shutil.rmtree, self.place.parent, True)
        self.one = self.broker()
        self.name_journal(self.one, self.place)

    def name_journal(self, broker, place):
        text = broker.config.read_text()
        path = f'path = "{broker.data}"\n'
        self.assertIn(path, text)
        broker.config.write_text(text.replace(path, f'{path}journal = "{place}"\n'))

    def fill(self, first=0):
        for n in range(first, first + 5):
            self.assertEqual(self.one.ctl("produce", "t", stdin=b"record %d\n" % n).code, 0)

    def restart(self):
        """What the start said."""
        self.one.kill9()
        mark = len(self.one.log())
        self.one.start()
        return self.one.log()[mark:]

    def records(self):
        done = self.one.ctl("consume", "t", "-e")
        self.assertEqual(done.code, 0, done.err)
        return done.out.splitlines()

    def test_it_lies_there_and_a_kill_loses_nothing(self):
        shown = ctl("-v", "config", "validate", str(self.one.config))
        self.assertEqual(shown.code, 0, shown.err)
        self.assertIn(f'storage.disk.journal = "{self.place}"', shown.out)
        self.one.start()
        self.one.create("t")
        self.fill()
        self.assertFalse((self.one.data / "journal").exists())
        self.assertEqual(len(list(self.place.glob("*/*.journal"))), 2)
        said = self.restart()
        self.assertNotIn("may be missing", said)
        self.assertEqual(self.records(), [f"record {n}" for n in range(5)])
        self.assertEqual(self.one.stop(), 0)
        verified = ctl("log", "verify", str(next(self.place.iterdir())))
        self.assertEqual(verified.code, 0, verified.err)
        self.assertIn("2 files, 1 partitions, ok", verified.out)

    def test_a_missing_one_is_said(self):
        self.one.start()
        self.one.create("t")
        self.fill()
        self.one.kill9()
        shutil.rmtree(self.place)
        self.place.mkdir()
        said = self.restart()
        self.assertIn(f"the journal is lost (there is no journal in {self.place}", said)
        self.assertIn("may be missing", said)
        # The page cache had it all.
        self.assertEqual(self.records(), [f"record {n}" for n in range(5)])
        self.fill(5)
        self.assertNotIn("journal is lost", self.restart())
        self.assertEqual(len(self.records()), 10)

    def test_one_that_was_not_moved_along_is_found(self):
        text = self.one.config.read_text()
        self.one.config.write_text(text.replace(f'journal = "{self.place}"\n', ""))
        self.one.start()
        self.one.create("t")
        self.fill()
        self.one.kill9()
        self.one.config.write_text(text)
        said = self.restart()
        self.assertIn(f"one lies in {self.one.data}/journal: was it not moved along?", said)

    def test_another_disks_is_not_taken(self):
        other = self.broker()
        self.name_journal(other, self.place)
        self.one.start()
        self.one.create("t")
        self.fill()
        (ours,) = self.place.iterdir()
        other.start()
        other.create("t")
        (theirs,) = (folder for folder in self.place.iterdir() if folder != ours)
        other.kill9()
        self.one.kill9()
        for file in ours.iterdir():
            shutil.copy(theirs / file.name, file)
        said = self.restart()
        self.assertRegex(said, r"the journal is lost \(\S+ belongs to another disk")
        self.assertEqual(len(self.records()), 5)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("xfs_io") and shutil.which("mkfs.xfs"), "needs root and XFS")
    def test_a_failing_device_takes_the_disk_offline_by_name(self):
        image = self.place.parent / "image"
        with open(image, "wb") as file:
            file.truncate(320 << 20)
        self.place.mkdir()
        subprocess.run(["mkfs.xfs", "-q", str(image)], check=True)
        mounted = subprocess.run(["mount", "-o", "loop", str(image), str(self.place)], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("no loop devices here")
        self.addCleanup(subprocess.run, ["umount", "-l", str(self.place)])
        self.addCleanup(self.one.end)
        self.one.start()
        self.one.create("t")
        self.fill()
        subprocess.run(["xfs_io", "-x", "-c", "shutdown", str(self.place)], check=True)
        self.assertNotEqual(self.one.ctl("--timeout", "5s", "produce", "t", stdin=b"lost\n").code, 0)

        def disk():
            return json.loads(self.one.ctl("broker", "disks", "-o", "json").out)["items"][0]

        wait_until(lambda: disk()["state"] == "failed", 10, "the disk is offline")
        self.assertIn(".journal failed", disk()["reason"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
