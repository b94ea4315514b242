"""The machine's clock jumps under a real broker. libfaketime moves the wall clock of that one process; the monotonic clock, by which
it waits, goes on. Without libfaketime the test says so and is skipped."""

import glob
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest
from datetime import datetime

from daemon import Case, program, wait_until

SKIPPED = 77  # what ctest takes for "skipped"
FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
HOUR, DAY = 3600, 86400
RETENTION_SECONDS = 12  # it looks every 10


class Jumps(Case):
    def start(self):
        broker = self.broker()
        self.clock = broker.folder / "clock"
        self.jump(0)
        broker.environment = {
            "LD_PRELOAD": FAKETIME[0], "FAKETIME_TIMESTAMP_FILE": str(self.clock), "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
        }
        return broker.start()

    def jump(self, seconds):
        """From now on the broker's wall clock is so many seconds off."""
        beside = self.clock.with_suffix(".new")
        beside.write_text(f"{seconds:+d}\n")
        beside.rename(self.clock)

    def produce(self, broker, topic, *values):
        done = broker.ctl("produce", topic, stdin=b"".join(b"%d\n" % value for value in values))
        self.assertEqual(done.code, 0, done.err)

    def append_times(self, broker, topic):
        """Of every batch on disk, in order, as seconds off the true clock of now."""
        identity = broker.describe(topic)["id"]
        done = broker.ctl("log", "dump", str(broker.data / f"{identity}-0"), "-o", "jsonl")
        self.assertEqual(done.code, 0, done.err)
        times = [datetime.fromisoformat(json.loads(line)["append_time"]).timestamp() for line in done.out.splitlines()]
        self.assertTrue(times)
        now = time.time()
        return [at - now for at in times]

    def cpu_seconds(self, broker):
        fields = pathlib.Path(f"/proc/{broker.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    # LOG-8, LOG-7: a day ahead, an hour behind, back, while records come in and are read.
    def test_append_times_never_fall_and_nobody_is_stuck(self):
        broker = self.start()
        broker.create("t", "--partitions", "1")
        count, rate = 3000, 300
        waiting = subprocess.Popen([program("mqctl"), "-b", broker.address, "consume", "t", "-n", str(count), "-f", "%v\n"],
                                   stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        sending = subprocess.Popen([program("mqctl"), "-b", broker.address, "produce", "t", "--rate", str(rate)],
                                   stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            sending.stdin.write(b"".join(b"%d\n" % n for n in range(count)))
            sending.stdin.close()
            for seconds in (0, DAY, -HOUR, DAY + HOUR, 0, -DAY):
                self.jump(seconds)
                time.sleep(1.3)
            self.assertEqual(sending.wait(timeout=60), 0, sending.stderr.read())
            read = waiting.communicate(timeout=30)[0].split()
        finally:
            for process in (sending, waiting):
                process.kill()
                process.wait()
            sending.stderr.close()
        self.assertEqual(read, [b"%d" % n for n in range(count)])
        times = self.append_times(broker, "t")
        self.assertTrue(times == sorted(times), "an append time fell")
        self.assertGreater(times[-1], DAY + HOUR - 60, "the jump ahead was seen")
        self.assertLess(times[0], 0, "and began at the true time")
        # The clock is a day behind now; a start does not forget how far it was.
        self.assertEqual(broker.stop(), 0)
        broker.start()
        self.produce(broker, "t", count)
        broker.kill9()
        broker.start()
        self.produce(broker, "t", count + 1)
        times = self.append_times(broker, "t")
        self.assertTrue(times == sorted(times), "an append time fell over a start")
        self.assertGreater(len(times), 10)
        # Waits that went by the wall clock would spin or sleep for a day.
        before = self.cpu_seconds(broker)
        self.jump(DAY)
        time.sleep(3)
        self.assertLess(self.cpu_seconds(broker) - before, 1.5)
        self.assertEqual(broker.stop(), 0)

    # LOG-10: age is what the broker's clock says, so a jump ahead ages what is there; a jump back deletes nothing.
    def test_retention_goes_by_the_age_that_the_clock_says(self):
        broker = self.start()
        broker.create("short", "--config", "retention.age=12h")
        broker.create("long")
        starts = lambda topic: broker.describe(topic)["partitions"][0]["log_start_offset"]
        for topic in ("short", "long"):
            self.produce(broker, topic, *range(100))
        for seconds in (-HOUR, HOUR):
            self.jump(seconds)
            time.sleep(RETENTION_SECONDS)
            self.assertEqual((starts("short"), starts("long")), (0, 0), f"clock off by {seconds} s")
        self.jump(DAY)
        wait_until(lambda: starts("short") == 100, 40, "what is a day old goes where 12 hours are kept")
        self.assertEqual(starts("long"), 0)
        # What arrives now is new by that clock, and stays when the clock comes back.
        self.produce(broker, "short", 100)
        self.jump(0)
        time.sleep(RETENTION_SECONDS)
        self.assertEqual(starts("short"), 100)
        self.assertEqual(broker.ctl("consume", "short", "-e").out.split(), ["100"])
        self.assertEqual(len(broker.ctl("consume", "long", "-e").out.split()), 100)
        self.assertEqual(broker.stop(), 0)


if __name__ == "__main__":
    if not FAKETIME:
        print("skipped: no libfaketime (package libfaketime)")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
