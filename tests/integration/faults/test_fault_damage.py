"""Files of a broker that are damaged, lost or exchanged for older ones while it is down or runs, under load: nothing wrong is read, what
is missing is fetched from the others, and whoever lacks something does not lead."""

import json
import pathlib
import random
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import ctl, wait_until  # noqa: E402
from fault_case import SESSION_SECONDS, FaultCase, main  # noqa: E402
from nemesis import back, killed, stopped  # noqa: E402


def flip(path, at=None, chosen=random):
    """One bit."""
    with open(path, "r+b") as file:
        size = path.stat().st_size
        place = chosen.randrange(size) if at is None else at % size
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << chosen.randrange(8)]))


class Files(FaultCase):
    TOPICS = {"safe": (3, ("durability=disk", "min_isr=2", "segment.bytes=1MiB")),
              "fast": (3, ("durability=memory", "min_isr=2", "segment.bytes=1MiB"))}
    VALUE_BYTES = 3000
    EXPECTED_ERRORS = ("is offline", "the journal is damaged", "cannot be read at", "cannot be replaced", "following broker .* ends")

    def setUp(self):
        super().setUp()
        self.chosen = random.Random(7)

    def partition_folders(self, number):
        folders = sorted(one for one in self.nodes[number].data.glob("*-[0-9]") if one.is_dir())
        self.assertEqual(len(folders), self.how_many())
        return folders

    def logs(self, number):
        """The segments of each partition."""
        return [sorted(folder.glob("*.log")) for folder in self.partition_folders(number)]

    def sealed_segments_everywhere(self):
        deadline = time.monotonic() + 60
        while any(len(segments) < 3 for segments in self.logs(1)):
            self.assertLess(time.monotonic(), deadline, "segments are finished")
            time.sleep(0.5)

    def read_all_of(self, number):
        """All partitions from this broker. What is found damaged is refused by name, and is there once another one leads."""
        names = [f"{topic}/{partition}" for topic, (partitions, _) in self.TOPICS.items() for partition in range(partitions)]
        self.ctl("partition", "elect-leader", *names, "--broker", str(number))
        wait_until(lambda: self.led_by(number) == len(names), 20, "it leads")
        deadline = time.monotonic() + 60
        while True:
            try:
                self.read_everything()
                break
            except AssertionError as refused:
                if "PARTITION_CORRUPT" not in str(refused) or time.monotonic() > deadline:
                    raise
        wait_until(lambda: ctl("log", "verify", str(self.nodes[number].data)).code == 0, 60, "it is mended")
        self.whole_again(60)

    def after(self, number, what, damage, away=killed):
        self.say(f"broker {number}: {what}")
        with away(self, number):
            damage(number)
        self.whole_again(60)
        done = self.ctl("topic", "describe", *self.TOPICS, "-o", "json")
        self.assertEqual(done.code, 0, done.err)
        starts = [one["log_start_offset"] for item in json.loads(done.out)["items"] for one in item["partitions"]]
        self.assertEqual(starts, [0] * self.how_many(), "no log has lost its beginning")


class Damaged(Files):
    def cut_tails(self, number):
        for segments in self.logs(number):
            size = segments[-1].stat().st_size
            with open(segments[-1], "r+b") as file:
                file.truncate(max(0, size - self.chosen.choice((1, 40, 5000))))

    def zero_tails(self, number):
        for segments, size in zip(self.logs(number), (4 << 10, 64 << 10, 1 << 20) * 2):
            there = segments[-1].stat().st_size
            with open(segments[-1], "r+b") as file:
                file.seek(max(0, there - size))
                file.write(bytes(min(there, size)))

    def spoil_sectors(self, number):
        for segments in self.logs(number):
            sectors = max(1, segments[-1].stat().st_size // 512)
            with open(segments[-1], "r+b") as file:
                file.seek(max(0, sectors - 1 - self.chosen.randrange(min(sectors, 20))) * 512)
                file.write(self.chosen.randbytes(512))

    def test_the_end_of_its_logs(self):
        self.begin_load()
        self.sealed_segments_everywhere()
        self.after(1, "torn ends", self.cut_tails)
        self.after(2, "zeros at the ends", self.zero_tails)
        self.after(3, "spoilt sectors near the ends", self.spoil_sectors)
        self.finish()

    def flip_in(self, pattern, newest=False):
        def damage(number):
            files = sorted(one for one in self.nodes[number].data.glob(pattern) if one.is_file() and one.stat().st_size > 0)
            self.assertTrue(files, pattern)
            flip(files[-1] if newest else self.chosen.choice(files), chosen=self.chosen)
        return damage

    def test_a_bit_while_it_is_down(self):
        self.begin_load()
        self.sealed_segments_everywhere()
        for number, pattern in zip((1, 2, 3) * 4, ("*-*/*0.log", "*-*/*.log", "*-*/*.index", "*-*/*.time", "*-*/*.producers", "checkpoint",
                                                   "running", "journal/*.journal", "watermarks", "scrub")):
            try:
                self.after(number, f"a bit of {pattern}", self.flip_in(pattern))
            except AssertionError as missing:
                if str(missing).find(pattern) < 0:
                    raise
                self.say(f"there is no {pattern}")
                self.ready(self.nodes[number], self.restart(number))
        self.after(1, "a bit of the clean marker", self.flip_in("clean"), stopped)
        # Damage of what nobody reads waits for the scrub.
        for number in self.nodes:
            self.read_all_of(number)
        self.finish()

    def test_a_bit_while_it_runs(self):
        """Of a finished segment of each partition; then all is read from it. What was written lately is read from memory, so it has started
        anew before."""
        self.begin_load()
        self.sealed_segments_everywhere()
        number = self.leader_of("safe")
        with stopped(self, number):
            pass
        self.whole_again()
        for segments in self.logs(number):
            flip(segments[0], chosen=self.chosen)
        self.say(f"a bit in each log of broker {number}, which runs")
        self.read_all_of(number)
        self.finish()


class Exchanged(Files):
    def remove_segments(self, number):
        for segments in self.logs(number):
            self.chosen.choice(segments).unlink()

    def remove_indexes(self, number):
        for one in list(self.nodes[number].data.glob("*-*/*.index")) + list(self.nodes[number].data.glob("*-*/*.time")):
            one.unlink()

    def remove_partitions(self, number):
        for segments in self.logs(number)[::2]:
            shutil.rmtree(segments[0].parent)

    def remove_everything(self, number):
        for one in self.nodes[number].data.iterdir():
            shutil.rmtree(one) if one.is_dir() else one.unlink()

    def test_files_that_are_gone(self):
        self.begin_load()
        self.sealed_segments_everywhere()
        self.after(1, "one segment of each partition is gone", self.remove_segments)
        self.after(2, "no index is there", self.remove_indexes)
        self.after(3, "half of its partitions are gone", self.remove_partitions)
        self.after(1, "its directory is empty", self.remove_everything)
        self.finish()

    def copy_of(self, number):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="mq-copy-")) / "data"
        self.addCleanup(shutil.rmtree, folder.parent, True)
        shutil.copytree(self.nodes[number].data, folder)
        return folder

    def put_back(self, copy):
        def exchange(number):
            shutil.rmtree(self.nodes[number].data)
            shutil.copytree(copy, self.nodes[number].data)
        return exchange

    def test_a_directory_from_an_older_copy(self):
        self.expected_errors.append("an older copy was put back")
        self.begin_load()
        for number, away in ((1, killed), (2, stopped)):
            with away(self, number):
                copy = self.copy_of(number)
            self.whole_again()
            time.sleep(5)
            self.after(number, f"as it was some seconds ago, when it was {away.__name__}", self.put_back(copy))
        self.finish()

    def test_a_directory_from_an_older_copy_of_whoever_comes_back_first(self):
        self.expected_errors.append("an older copy was put back")
        self.begin_load()
        with killed(self, 1):
            copy = self.copy_of(1)
        self.whole_again()
        time.sleep(4)
        self.say("kill -9 of all; broker 1 has its older copy and is alone for a while")
        for node in self.nodes.values():
            node.kill9()
        self.put_back(copy)(1)
        times = self.restart(1)
        time.sleep(2 * SESSION_SECONDS)
        back(self, [2, 3])
        self.ready(self.nodes[1], times)
        self.whole_again(60)
        self.finish()


if __name__ == "__main__":
    main()
