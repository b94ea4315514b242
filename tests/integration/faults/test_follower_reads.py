"""Three brokers, each in a rack of its own: consumers read from the replica in theirs, whoever leads and whoever is away, and what is
damaged there is read elsewhere and mended."""

import os
import pathlib
import re
import secrets
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import program, wait_until  # noqa: E402
from three_brokers import FAILOVER_SECONDS, TOPIC, Replicated  # noqa: E402
from zookeeper import available  # noqa: E402

SEGMENT = 64 << 10


class Reader:
    """Prints partition, offset, key and value of each record until it is ended."""

    def __init__(self, addresses, rack):
        self.file = tempfile.NamedTemporaryFile(prefix="mq-reader-")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MQCTL_")} | {"HOME": "/nonexistent"}
        self.process = subprocess.Popen(
            [program("mqctl"), "-b", addresses, "consume", TOPIC, "--rack", rack, "-f", "%p %o %k:%v\\n"],
            stdin=subprocess.DEVNULL, stdout=self.file, stderr=subprocess.DEVNULL, env=environment)

    def records(self):
        """Whole lines so far."""
        text = pathlib.Path(self.file.name).read_text()
        return [line.split(" ") for line in text[:text.rfind("\n") + 1].splitlines()]

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.file.close()


class FromFollowers(Replicated):
    TOPICS = {TOPIC: (3, (f"segment.bytes={SEGMENT // 1024}KiB",))}

    def place_of(self, number):
        return {"environment": {"MQ_BROKER__RACK": f"rack-{number}"}}

    def fetched_from(self):
        """Answers to consumers so far, by broker."""
        done = self.ctl("status", "-v")
        self.assertEqual(done.code, 0, done.err)
        tables = done.out.split("COUNTER")[1:]
        self.assertEqual(len(tables), 3, done.out)
        return [int(re.search(r"^fetch_answers_total +([0-9,]+)$", table, re.M)[1].replace(",", "")) for table in tables]

    def check_order(self, records):
        """Of each partition every offset, once, from 0 on."""
        ends = {}
        for partition, offset, _ in records:
            self.assertEqual(int(offset), ends.get(partition, 0), f"partition {partition}")
            ends[partition] = int(offset) + 1

    def test_leaders_and_the_replica_that_is_read_come_and_go(self):
        self.wait_until_whole()
        reader = Reader(self.addresses, "rack-3")
        self.addCleanup(reader.process.kill)
        writer = self.writer()
        self.write_some(writer)
        time.sleep(2)
        before = self.fetched_from()
        self.write_some(writer)
        after = self.fetched_from()
        self.assertEqual(after[:2], before[:2], "partitions that others lead are read from broker 3")
        self.assertGreater(after[2], before[2])
        for number in (1, 3, 2):
            self.nodes[number].kill9()
            wait_until(self.all_led, FAILOVER_SECONDS, "every partition has a leader")
            self.write_some(writer)
            self.ready(self.nodes[number], self.restart(number))
            self.wait_until_whole()
        acknowledged = writer.end()
        wait_until(lambda: acknowledged <= {record for _, _, record in reader.records()}, 60, "all that was acknowledged is read")
        self.check_order(reader.records())
        reader.end()
        self.check_logs_are_equal()

    def damage_while_away(self, numbers=(2,)):
        """Records, in batches of their own, and brokers that come back with a damaged segment of partition 0: the last one's segments, and what they hold."""
        self.wait_until_whole()
        lines = [f"k{i}:{secrets.token_urlsafe(700)}" for i in range(1500)]
        for first in range(0, len(lines), 60):
            done = self.ctl("produce", TOPIC, "-K", ":", stdin="\n".join(lines[first:first + 60]).encode(), seconds=60)
            self.assertEqual(done.code, 0, done.err)
        for number in numbers:
            node = self.nodes[number]
            self.assertEqual(node.stop(), 0)
            log = sorted(node.data.glob("*-0/*.log"))
            self.assertGreater(len(log), 3)
            with open(log[1], "r+b") as file:
                file.seek(30)
                byte = file.read(1)
                file.seek(30)
                file.write(bytes([byte[0] ^ 0x40]))
            self.ready(node, self.restart(number))
            self.wait_until_whole()
        return log, set(lines)

    def wait_until_mended(self, log):
        wait_until(lambda: "is kept under unknown/" in self.nodes[2].log(), 60, "the damaged end is put away")
        self.wait_until_whole()
        away = sorted(path.name for path in (self.nodes[2].data / "unknown").glob("*/*.log"))
        self.assertEqual(away, [path.name for path in log[1:]])

    def test_a_damaged_segment_is_read_elsewhere_and_mended(self):
        log, lines = self.damage_while_away()
        kept = log[0].stat().st_ino
        # It is connected with that broker from the beginning, so that nothing comes from the leaders meanwhile.
        reader = Reader(self.nodes[2].address, "rack-2")
        self.addCleanup(reader.process.kill)
        wait_until(lambda: lines == {record for _, _, record in reader.records()}, 60, "all is read")
        self.wait_until_mended(log)
        self.check_order(reader.records())
        reader.end()
        self.assertEqual(log[0].stat().st_ino, kept, "what was sound stays")
        self.check_logs_are_equal()

    def test_a_leader_that_is_damaged_gives_way(self):
        log, lines = self.damage_while_away()
        done = self.ctl("partition", "elect-leader", f"{TOPIC}/0", "--broker", "2")
        self.assertEqual(done.code, 0, done.err)
        self.check_all_is_read(lines)
        self.wait_until_mended(log)
        self.assertNotEqual(self.partitions()[0]["leader"], 2)
        self.check_logs_are_equal()

    def test_two_of_three_are_damaged_in_the_same_place(self):
        _, lines = self.damage_while_away((2, 3))
        done = self.ctl("partition", "elect-leader", f"{TOPIC}/0", "--broker", "2")
        self.assertEqual(done.code, 0, done.err)
        self.check_all_is_read(lines)
        # Broker 1 may have come after broker 2, and broker 3 has not met its own damage then: it is met by reading there.
        self.check_all_is_read(lines, "--rack", "rack-3", ctl=self.nodes[3].ctl)
        for number in (2, 3):
            wait_until(lambda: "is kept under unknown/" in self.nodes[number].log(), 60, f"broker {number} puts the damaged end away")
        self.wait_until_whole()
        self.check_all_is_read(lines)
        self.check_logs_are_equal()

    def check_all_is_read(self, lines, *options, ctl=None):
        """By a consumer that is not ended by damage where it reads. One that is connected with its rack's broker from the beginning reads
        all of it there."""
        done = (ctl or self.ctl)("--timeout", "30s", "consume", TOPIC, "-e", "-f", "%k:%v\\n", *options, seconds=90)
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(set(done.out.split()), lines)


if __name__ == "__main__":
    if not available():
        print("skipped: no java or no zookeeper.jar (tools/dev setup installs both)")
        sys.exit(77)
    unittest.main(verbosity=2)
