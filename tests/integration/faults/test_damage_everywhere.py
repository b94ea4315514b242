"""A damaged batch that no other replica can mend: what can still be read, what the screens say, and the ways out."""

import json
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import wait_until  # noqa: E402
from three_brokers import FAILOVER_SECONDS, RETURN_SECONDS, TOPIC, Replicated  # noqa: E402
from zookeeper import available  # noqa: E402

NAME = f"{TOPIC}/0"
RECORDS = 3000


class NobodyElseCanMendIt(Replicated):
    SETTINGS = ("segment.bytes=64KiB", "batch.bytes=16KiB")
    TOPICS = {TOPIC: (1, SETTINGS)}

    def read(self, topic, begin="start"):
        done = self.ctl("consume", topic, "-p", "0", "-o", str(begin), "-e", "-f", "%v\\n", seconds=120)
        self.assertEqual(done.code, 0, done.err)
        return [line.split("-")[0] for line in done.out.splitlines()]

    def folder(self, number, topic):
        topic_id = json.loads(self.ctl("topic", "describe", topic, "-o", "json").out)["items"][0]["id"]
        return self.nodes[number].data / f"{topic_id}-0"

    def flip(self, folder):
        """A byte of a record in the middle of the third segment. The segment's name, and that record's number."""
        segment = sorted(folder.glob("*.log"))[2]
        data = bytearray(segment.read_bytes())
        at = data.index(b"x" * 200, len(data) // 2)
        number = int(data[at - 7:at - 1])
        data[at + 100] ^= 4
        segment.write_bytes(data)
        return segment.name, number

    def is_refused(self, topic):
        """Who reads all of it is told so, and how far it was good."""
        done = self.ctl("--timeout", "30s", "consume", topic, "-p", "0", "-o", "start", "-e", "-f", "%v\\n", seconds=120)
        self.assertNotEqual(done.code, 0)
        return "PARTITION_CORRUPT" in done.err

    def damaged(self, name):
        """Where, by broker."""
        return {one["broker"]: one["text"] for one in self.described(name)["replica_notes"]}

    def offsets(self, text):
        """The first that cannot be read, and where it goes on."""
        first, last = text[text.index("(offsets ") + 9:text.rindex(")")].split(" to ")
        return int(first), int(last) + 1

    def listed(self, topic):
        return [one["note"] for one in json.loads(self.ctl("partition", "list", topic, "-o", "json").out)["items"]]

    def elect(self, name, number, *words):
        return self.ctl("partition", "elect-leader", name, "--broker", str(number), "--accept-loss", *words)

    def on_some_disk(self, numbers):
        """Those that are in no file of any broker."""
        all_bytes = [file.read_bytes() for node in self.nodes.values() for file in node.data.rglob("*.log")]
        return [number for number in numbers if not any(f"{number:06}-xxx".encode() in one for one in all_bytes)]

    def restart_all(self, between=lambda: None):
        """After a clean stop no journal has anything that a start would put back."""
        for node in self.nodes.values():
            self.assertEqual(node.stop(), 0)
        between()
        times = {number: self.restart(number) for number in self.nodes}
        for number, node in self.nodes.items():
            self.ready(node, times[number])

    def test_the_same_batch_of_all_replicas(self):
        self.wait_until_whole()
        self.write_numbers(TOPIC, 0, RECORDS)
        whole = self.read(TOPIC)
        self.assertEqual(len(whole), RECORDS)
        places = set()
        folders = [self.folder(number, TOPIC) for number in self.nodes]
        self.restart_all(lambda: places.update(self.flip(folder) for folder in folders))
        self.assertEqual(len(places), 1)
        segment, number = places.pop()
        self.wait_until_whole()

        wait_until(lambda: self.is_refused(TOPIC), 120, "whoever reads it is told for good")
        leader = lambda: self.described(NAME)["leader"]  # noqa: E731
        wait_until(lambda: leader() in self.damaged(NAME) and len(self.damaged(NAME)) >= 2, FAILOVER_SECONDS, "it is known on all in sync")
        # Nobody is better, so nobody else is elected however often it is read.
        epoch = self.described(NAME)["leader_epoch"]
        until = time.monotonic() + 25
        while time.monotonic() < until:
            self.assertTrue(self.is_refused(TOPIC))
        self.assertEqual(self.described(NAME)["leader_epoch"], epoch)

        now = self.damaged(NAME)
        first, end = self.offsets(now[leader()])
        self.assertTrue(first <= number < end, now)
        done = self.ctl("health", "--level", "2")
        self.assertEqual(done.code, 10, done.out)
        self.assertIn(f"{NAME} on broker {leader()}, which leads it: {segment} cannot be read at byte", done.out)
        self.assertIn(f"broker {leader()} is damaged: {segment} cannot be read", self.listed(TOPIC)[0])
        said = self.ctl("partition", "describe", NAME).out
        self.assertIn(f"(offsets {first} to {end - 1})", said)
        self.assertIn(f"mqctl partition elect-leader {NAME} --broker {leader()} --accept-loss", said)
        # What lies before and behind is there, and more can be written.
        self.assertEqual(self.read(TOPIC, end), whole[end:])
        self.write_numbers(TOPIC, RECORDS, RECORDS + 100)
        self.assertEqual(len(self.read(TOPIC, end)), RECORDS + 100 - end)

        chosen = leader()
        planned = self.elect(NAME, chosen, "--dry-run")
        self.assertEqual(planned.code, 0, planned.err)
        self.assertIn("cannot be read at byte", planned.out)
        done = self.elect(NAME, chosen, "--yes")
        self.assertEqual(done.code, 0, done.err)
        wait_until(lambda: self.described(NAME)["loss_start"] >= 0, FAILOVER_SECONDS, "it says from where on records are lost")
        self.wait_until_whole()
        start = self.described(NAME)["loss_start"]
        self.assertTrue(0 < start <= first)
        self.assertEqual(self.read(TOPIC), whole[:start])
        self.assertEqual(self.on_some_disk(one for one in range(RECORDS + 100) if one != number), [])
        self.assertIn(f"{NAME} (offsets {start} to {RECORDS + 99}, leader epoch", self.ctl("health").out)
        self.assertEqual(self.ctl("partition", "acknowledge-loss", NAME).code, 0)
        wait_until(lambda: self.ctl("health").code == 0, RETURN_SECONDS, "all is well")
        self.check_logs_are_equal()

    def single(self):
        given = [word for setting in self.SETTINGS for word in ("-c", setting)]
        self.assertEqual(self.ctl("topic", "create", "single", "--replicas", "1", *given).code, 0)
        self.write_numbers("single", 0, RECORDS)
        whole = self.read("single")
        number = self.described("single/0")["leader"]
        folder = self.folder(number, "single")
        self.assertEqual(self.nodes[number].stop(), 0)
        place = self.flip(folder)
        self.ready(self.nodes[number], self.restart(number))
        wait_until(lambda: self.is_refused("single"), 60, "whoever reads it is told")
        planned = self.elect("single/0", number, "--dry-run")
        self.assertEqual(planned.code, 0, planned.err)  # at once, that is
        return number, whole, place

    def is_named(self, number, segment):
        done = self.ctl("health", "--level", "2")
        self.assertEqual(done.code, 10, done.out)
        self.assertIn(f"single/0 on broker {number}, which leads it: {segment} cannot be read at byte", done.out)
        self.assertIn(f"broker {number} is damaged: {segment} cannot be read", self.listed("single")[0])
        topics = json.loads(self.ctl("topic", "list", "-o", "json").out)["items"]
        self.assertEqual({one["name"]: one["partitions_damaged"] for one in topics}, {"single": 1, TOPIC: 0})

    def test_the_only_replica_at_a_read(self):
        number, whole, (segment, record) = self.single()
        wait_until(lambda: number in self.damaged("single/0"), 20, "it is known")
        self.is_named(number, segment)
        self.nodes[number].kill9()
        self.ready(self.nodes[number], self.restart(number))
        wait_until(lambda: number in self.damaged("single/0"), 20, "it is known still")
        self.is_named(number, segment)
        first, end = self.offsets(self.damaged("single/0")[number])
        self.assertEqual(self.read("single", end), whole[end:])
        self.write_numbers("single", RECORDS, RECORDS + 100)

        done = self.elect("single/0", number, "--yes")
        self.assertEqual(done.code, 0, done.err)
        wait_until(lambda: self.described("single/0")["loss_start"] >= 0, FAILOVER_SECONDS, "it is served again")
        start = self.described("single/0")["loss_start"]
        self.assertTrue(0 < start <= first)
        self.assertEqual(self.read("single"), whole[:start])
        self.assertEqual(self.on_some_disk(one for one in range(RECORDS + 100) if one != record), [])
        self.write_numbers("single", 5000, 5100)
        self.assertEqual(len(self.read("single")), start + 100)
        self.assertEqual(self.ctl("partition", "acknowledge-loss", "single/0").code, 0)
        wait_until(lambda: self.ctl("health").code == 0, RETURN_SECONDS, "all is well")

    def test_what_is_damaged_can_be_trimmed_away(self):
        number, whole, _ = self.single()
        wait_until(lambda: number in self.damaged("single/0"), 20, "it is known")
        _, end = self.offsets(self.damaged("single/0")[number])
        done = self.ctl("topic", "trim", "single", "-p", "0", "--to", str(end), "--yes")
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(self.read("single"), whole[end:])
        wait_until(lambda: self.ctl("health").code == 0, RETURN_SECONDS, "all is well")


if __name__ == "__main__":
    if not available():
        print("skipped: no java or no zookeeper.jar (tools/dev setup installs both)")
        sys.exit(77)
    unittest.main(verbosity=2)
