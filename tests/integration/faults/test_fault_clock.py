"""One of three brokers has a wall clock that is a day ahead, an hour behind, or wobbles, under load and with retention by age: nothing goes
before its time, nothing is stamped with the wrong time, and whoever watches over the cluster is told (LOG-14)."""

import json
import os
import pathlib
import struct
import sys
import time
from datetime import datetime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import wait_until  # noqa: E402
from fault_case import FaultCase, main  # noqa: E402
from nemesis import killed  # noqa: E402

LIBRARY = os.environ.get("MQ_WALL_CLOCK_LIBRARY", "")
HOUR, DAY = 3600, 86400
RETENTION_SECONDS = 12  # brokers look every 10
TOLD_SECONDS = 10
PULL_SECONDS = 2  # brokers tell their clocks so often


class WallClock:
    """Of one process (wall_clock.cc)."""

    def __init__(self, file):
        self.file = file
        file.write_bytes(bytes(8))

    def environment(self):
        return {"LD_PRELOAD": LIBRARY, "MQ_WALL_CLOCK_FILE": str(self.file)}

    def jump(self, seconds):
        """From now on it is so many seconds off."""
        with self.file.open("r+b") as clock:
            clock.write(struct.pack("=q", round(1000 * seconds)))


class Clocks(FaultCase):
    TOPICS = {"safe": (3, ("durability=disk", "min_isr=2", "retention.age=12h", "segment.bytes=1MiB")),
              "fast": (3, ("durability=memory", "min_isr=2", "retention.age=12h", "segment.bytes=1MiB"))}
    RATE = 200

    def setUp(self):
        self.clocks = {}
        super().setUp()

    def broker(self, extra="", **options):
        broker = super().broker(extra, **options)
        number = options["broker_id"]
        self.clocks[number] = WallClock(broker.folder / "clock")
        broker.environment = self.clocks[number].environment()
        return broker

    def starts(self):
        """Where each log begins, on every broker's disk."""
        found = set()
        for node in self.nodes.values():
            for folder in node.data.glob("*-*"):
                bases = [int(one.stem) for one in folder.glob("*.log")]
                found.add(min(bases) if bases else None)
        return found

    def alarms(self):
        done = self.ctl("health", "--level", "3", "-o", "json")
        return [trouble for check in json.loads(done.out)["items"] if check["check"] == "clocks" for trouble in check["troubles"]]

    def told(self, *words):
        """An alarm that says all of this."""
        wait_until(lambda: any(all(word in alarm for word in words) for alarm in self.alarms()), TOLD_SECONDS, f"an alarm: {words}")

    def quiet(self):
        wait_until(lambda: not self.alarms(), TOLD_SECONDS, "no alarm any more")

    def append_times(self):
        """Of the newest batch of each log that broker 1 has, as seconds off the true clock."""
        times = []
        for folder in self.nodes[1].data.glob("*-*"):
            done = self.nodes[1].ctl("log", "dump", str(folder), "-o", "jsonl", seconds=120)
            lines = done.out.splitlines()
            self.assertTrue(lines, done.err)
            at = [datetime.fromisoformat(json.loads(line)["append_time"]).timestamp() for line in lines]
            self.assertEqual(at, sorted(at), "append times fell")
            times.append(at[-1] - time.time())
        return times

    def stays(self, seconds=RETENTION_SECONDS):
        """Nothing goes while retention looks, and records are written and read on."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.assertEqual(self.starts(), {0}, "something was deleted")
            time.sleep(1)
        self.writes_go_on()

    def test_one_that_is_off_deletes_nothing_and_is_named(self):
        self.begin_load()
        for number in (1, 2, 3):
            for seconds, words in ((DAY, (f"broker {number} ", "24.0 hours", "ahead")), (-HOUR, (f"broker {number} ", "60.0 minutes", "behind"))):
                self.say(f"the clock of broker {number} is {seconds:+d} s off")
                self.clocks[number].jump(seconds)
                self.told(*words)
                self.stays()
                self.clocks[number].jump(0)
                self.quiet()
                time.sleep(2 * PULL_SECONDS)  # until the broker has told its log
        lines = [line for node in self.nodes.values() for line in node.log().splitlines() if " the clock of broker " in line]
        self.assertEqual(len(lines), 6, "one line for each time")
        for off in self.append_times():
            self.assertLess(abs(off), 300)
        self.whole_again()
        self.finish(longest=2)

    def test_a_wobble_is_none_and_a_restart_of_one_that_is_off_changes_nothing(self):
        self.begin_load()
        for seconds in (1, 0, -1, 0, 8, 0):
            self.clocks[2].jump(seconds)
            time.sleep(1)
        self.assertEqual(self.alarms(), [])
        self.clocks[2].jump(DAY)
        self.told("broker 2 ", "ahead")
        with killed(self, 2):
            time.sleep(1)
        self.whole_again()
        self.told("broker 2 ", "ahead")
        self.stays()
        self.clocks[2].jump(0)
        self.quiet()
        self.finish()

    # Nobody can tell which one is right: both keep everything.
    def test_of_two_that_differ_neither_deletes(self):
        self.begin_load()
        with killed(self, 3):
            wait_until(lambda: all(one["leader"] in (1, 2) for one in self.partitions()), 40, "the others lead")
            self.clocks[2].jump(DAY)
            self.told("the clocks of the 2 brokers", "no time has a majority")
            self.stays(2 * RETENTION_SECONDS)
            self.clocks[2].jump(0)
            self.quiet()
        self.finish()


if __name__ == "__main__":
    if not LIBRARY:
        print("skipped: no MQ_WALL_CLOCK_LIBRARY: build wall_clock")
        sys.exit(77)
    main()
