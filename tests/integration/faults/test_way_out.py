"""Partitions that nobody can lead: what the screens say of them, and the way out that an operator has."""

import json
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import program, wait_until  # noqa: E402
from three_brokers import FAILOVER_SECONDS, RETURN_SECONDS, TOPIC, Replicated  # noqa: E402
from zookeeper import available  # noqa: E402

NAME = f"{TOPIC}/0"


class NobodyCanLead(Replicated):
    TOPICS = {TOPIC: (1, ("segment.bytes=64KiB", "batch.bytes=16KiB"))}

    def read(self, topic):
        done = self.ctl("consume", topic, "-e", "-f", "%o %v\\n")
        self.assertEqual(done.code, 0, done.err)
        return [line.split("-")[0] for line in done.out.splitlines()]

    def folder(self, number, name):
        topic, partition = name.split("/")
        topic_id = json.loads(self.ctl("topic", "describe", topic, "-o", "json").out)["items"][0]["id"]
        return self.nodes[number].data / f"{topic_id}-{partition}"

    def end_all(self):
        for node in self.nodes.values():
            node.kill9()

    def stop_all(self):
        """After a clean stop no journal has anything that a start would put back."""
        for node in self.nodes.values():
            self.assertEqual(node.stop(), 0)

    def start_all(self):
        times = {number: self.restart(number) for number in self.nodes}
        for number, node in self.nodes.items():
            self.ready(node, times[number])

    def damage(self, folder):
        """The middle of the log is gone. Where the damage begins."""
        segments = sorted(folder.glob("*.log"))
        self.assertGreater(len(segments), 3)
        segments[2].unlink()
        return int(segments[2].stem)

    def elect(self, name, number, *words):
        return self.ctl("partition", "elect-leader", name, "--broker", str(number), "--accept-loss", *words)

    def led_with_loss(self, name, number, end):
        """By that broker, which has records up to `end`; how many of them are known to be the confirmed ones depends on when it was told."""
        now = self.described(name)
        return now["leader"] == number and now["note"] == "" and 0 <= now["loss_start"] <= end

    def test_a_log_that_is_damaged_everywhere(self):
        self.wait_until_whole()
        self.write_numbers(TOPIC, 0, 3000)
        whole = self.read(TOPIC)
        folders = [self.folder(number, NAME) for number in self.nodes]
        self.stop_all()
        start = {self.damage(folder) for folder in folders}
        self.assertEqual(len(start), 1)
        start = start.pop()
        self.start_all()

        wait_until(lambda: all("cannot use its log" in one["text"] for one in self.described(NAME)["replica_notes"]),
                   FAILOVER_SECONDS, "all three say why")
        now = self.described(NAME)
        self.assertEqual((now["leader"], len(now["replica_notes"])), (-1, 3))
        said = self.ctl("partition", "describe", NAME).out
        for number in self.nodes:
            self.assertIn(f"! broker {number} cannot use its log: the partition's log is damaged", said)
        self.assertIn(f"mqctl partition elect-leader {NAME} --broker ID --accept-loss", said)
        for words in (("health", "--level", "2"), ("status",), ("partition", "list", "--leaderless"), ("topic", "describe", TOPIC)):
            done = self.ctl(*words)
            self.assertIn("cannot use its log", done.out, words)
            self.assertEqual(done.code, 10 if words[0] == "health" else 0)
        self.assertIn("leads 0 of 1 partition", self.ctl("status").out)
        self.assertNotEqual(self.ctl("--timeout", "2s", "produce", TOPIC, stdin=b"refused\n").code, 0)

        self.assertEqual(self.elect(NAME, 2).code, 8, "nobody has said yes")
        self.assertEqual(self.ctl("partition", "elect-leader", NAME, "--accept-loss", "--yes").code, 2, "who is it to be?")
        planned = self.elect(NAME, 2, "--dry-run")
        self.assertEqual(planned.code, 0, planned.err)
        self.assertIn(f"would have {NAME} led by broker 2 with what it has", planned.out)
        self.assertEqual(self.described(NAME)["leader"], -1)
        self.assertEqual(self.elect(NAME, 9, "--yes").code, 1)
        done = self.elect(NAME, 2, "--yes", "-o", "json")
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(json.loads(done.out)["items"],
                         [{"topic": TOPIC, "partition": 0, "leader": 2, "changed": True, "dry_run": False}])

        wait_until(lambda: self.led_with_loss(NAME, 2, start), FAILOVER_SECONDS, "it is served, and says from where on records are lost")
        self.wait_until_whole()
        self.assertEqual(self.read(TOPIC), whole[:start])
        self.assertEqual(self.described(NAME)["loss_start"], start)
        self.assertIn(f"those from offset {start} on", self.ctl("partition", "describe", NAME).out)
        self.assertIn(f"{NAME} (from offset {start} on", self.ctl("health").out)
        refused = self.elect(NAME, 1, "--yes")
        self.assertEqual(refused.code, 1, refused.out)
        self.assertIn("it is served, by broker 2", refused.err)
        # Disks look at what lies there now and then.
        disks = lambda: json.loads(self.ctl("broker", "disks", "-o", "json").out)["items"]  # noqa: E731
        wait_until(lambda: [one["logs_put_aside"] for one in disks()] == [1, 1, 1], 30, "what was put aside is counted")
        self.assertTrue(all(one["bytes_put_aside"] > 100_000 for one in disks()), disks())

        self.assertIn("the loss is known now", self.ctl("partition", "acknowledge-loss", NAME).out)
        self.assertIn("there is no loss to acknowledge", self.ctl("partition", "acknowledge-loss", NAME).out)
        self.assertEqual(self.ctl("health").code, 0)
        self.write_numbers(TOPIC, 5000, 6000)
        self.assertEqual(len(self.read(TOPIC)), start + 1000)
        self.end_all()
        self.start_all()
        self.wait_until_whole()
        self.assertEqual(len(self.read(TOPIC)), start + 1000)
        self.check_logs_are_equal()

    def test_the_only_replica_is_damaged(self):
        self.assertEqual(self.ctl("topic", "create", "single", "--replicas", "1", "-c", "segment.bytes=64KiB", "-c", "batch.bytes=16KiB").code, 0)
        self.write_numbers("single", 0, 3000)
        whole = self.read("single")
        number = self.described("single/0")["leader"]
        folder = self.folder(number, "single/0")
        self.assertEqual(self.nodes[number].stop(), 0)
        start = self.damage(folder)
        self.ready(self.nodes[number], self.restart(number))
        wait_until(lambda: "damaged" in self.described("single/0")["note"], FAILOVER_SECONDS, "it says why it is not served")
        self.assertIn(f"try: mqctl partition elect-leader single/0 --broker {number} --accept-loss",
                      self.ctl("partition", "describe", "single/0").out)
        done = self.ctl("health", "--level", "2")
        self.assertEqual(done.code, 10)
        self.assertIn(f"single/0 is not served by broker {number}: the partition's log is damaged", done.out)
        done = self.elect("single/0", number, "--yes")
        self.assertEqual(done.code, 0, done.err)
        wait_until(lambda: self.led_with_loss("single/0", number, start), FAILOVER_SECONDS, "it is served again")
        self.assertEqual(self.read("single"), whole[:start])
        self.write_numbers("single", 5000, 5100)
        self.assertEqual(len(self.read("single")), start + 100)
        self.assertEqual(self.described("single/0")["loss_start"], start)
        self.assertEqual(self.ctl("partition", "acknowledge-loss", "single/0").code, 0)
        wait_until(lambda: self.ctl("health").code == 0, RETURN_SECONDS, "all is well")

    def test_whoever_has_everything_is_gone(self):
        """A replica that was not in sync leads where somebody says so, and whoever comes back follows it."""
        self.wait_until_whole()
        self.assertEqual(self.ctl("topic", "alter", TOPIC, "-c", "min_isr=1").code, 0)
        self.write_numbers(TOPIC, 0, 100)
        leader = self.described(NAME)["leader"]
        others = [number for number in self.nodes if number != leader]
        for number in others:
            self.nodes[number].kill9()
        wait_until(lambda: self.described(NAME)["in_sync"] == [leader], FAILOVER_SECONDS, "it is alone")
        self.write_numbers(TOPIC, 100, 150)
        self.nodes[leader].kill9()
        for number in others:
            self.ready(self.nodes[number], self.restart(number))
        wait_until(lambda: self.described(NAME)["leader"] == -1, FAILOVER_SECONDS, "nobody leads")

        def ends_are_known():
            notes = {one["broker"]: one["text"] for one in self.described(NAME)["replica_notes"]}
            return notes[leader] == "is away" and all("was not in sync: its log ends at offset 100" in notes[one] for one in others)
        wait_until(ends_are_known, FAILOVER_SECONDS, "each says what it has")
        self.assertIn(f"{NAME}: no leader: ", self.ctl("health", "--level", "2").out)
        done = self.elect(NAME, others[0], "--yes")
        self.assertEqual(done.code, 0, done.err)
        wait_until(lambda: self.led_with_loss(NAME, others[0], 100), RETURN_SECONDS, "it leads with what it has")
        self.write_numbers(TOPIC, 200, 210)
        self.ready(self.nodes[leader], self.restart(leader))
        self.wait_until_whole()
        self.assertEqual(self.described(NAME)["loss_end"], 150)
        self.assertEqual(len(self.read(TOPIC)), 110)
        self.check_logs_are_equal()

    def test_too_few_in_sync_for_acks_all(self):
        self.wait_until_whole()
        leader = self.described(NAME)["leader"]
        others = [number for number in self.nodes if number != leader]
        for number in others:
            self.nodes[number].kill9()
        wait_until(lambda: self.described(NAME)["in_sync"] == [leader], FAILOVER_SECONDS, "it is alone")
        done = self.ctl("health", "--level", "2")
        self.assertEqual(done.code, 10, done.out)
        missing = ",".join(str(number) for number in self.described(NAME)["replicas"] if number != leader)
        self.assertIn(f"{NAME} (1 of min_isr 2 in sync, without brokers {missing})", done.out)
        self.assertIn("acks=all is refused", self.ctl("partition", "describe", NAME).out)
        self.assertIn("acks=all is refused", self.ctl("status").out)


class ConsumersThatWait(Replicated):
    TOPICS = {TOPIC: (1, ())}

    def consume(self, *words):
        consumer = subprocess.Popen([program("mqctl"), "-b", self.addresses, "--timeout", "2s", "consume", TOPIC, *words],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(consumer.kill)
        return consumer

    def write(self, line):
        wait_until(lambda: self.ctl("produce", TOPIC, stdin=line).code == 0, FAILOVER_SECONDS, "it is written")

    def test_an_outage_is_waited_through(self):
        self.wait_until_whole()
        self.write(b"before\n")
        consumer = self.consume()
        self.assertEqual(consumer.stdout.readline(), b"before\n")
        for node in self.nodes.values():
            node.kill9()
        nobody = self.consume()
        self.assertEqual(nobody.wait(timeout=30), 6, "nobody is there at its start")
        nobody.communicate()
        time.sleep(3)
        self.assertIsNone(consumer.poll(), "it waits longer than --timeout")
        times = {number: self.restart(number) for number in self.nodes}
        for number, node in self.nodes.items():
            self.ready(node, times[number])
        self.write(b"after\n")
        self.assertEqual(consumer.stdout.readline(), b"after\n")
        consumer.send_signal(signal.SIGINT)
        said = consumer.communicate(timeout=30)[1]
        self.assertEqual(consumer.returncode, 130)
        self.assertIn(b"trying again", said)
        self.assertIn(b"reading goes on", said)

    def test_from_the_start_without_zookeeper(self):
        self.wait_until_whole()
        self.write(b"one\ntwo\n")
        self.zookeeper.pause()
        try:
            # Nobody is sure any more to be the leader.
            wait_until(lambda: self.ctl("--timeout", "2s", "consume", TOPIC, "-e").code != 0, FAILOVER_SECONDS, "the end is not told")
            done = self.ctl("consume", TOPIC, "-n", "2", seconds=60)
            self.assertEqual((done.code, done.out), (0, "one\ntwo\n"), done.err)
        finally:
            self.zookeeper.resume()


if __name__ == "__main__":
    if not available():
        print("skipped: no java or no zookeeper.jar (tools/dev setup installs both)")
        sys.exit(77)
    unittest.main(verbosity=2)
