"""Three brokers on one ZooKeeper: kill -9 of the controller and of others, all at once, pauses beyond the session time, and
ZooKeeper away, while records are written. What was acknowledged is there at the end."""

import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import wait_until  # noqa: E402
from three_brokers import FAILOVER_SECONDS, TOPIC, ThreeBrokers  # noqa: E402
from zookeeper import available  # noqa: E402


class OneZooKeeper(ThreeBrokers):
    def test_partitions_lie_on_all_of_them(self):
        leaders = {one["leader"] for one in self.partitions()}
        self.assertEqual(leaders, {1, 2, 3})
        for one in self.partitions():
            self.assertEqual(one["replicas"], [one["leader"]])

    def test_controller_and_others_are_killed_and_come_back(self):
        writer = self.writer()
        for round_number in range(3):
            number = self.controller()
            self.assertIsNotNone(number)
            self.nodes[number].kill9()
            self.wait_for_controller(other_than=number)
            wait_until(lambda: self.created(f"round-{round_number}"), FAILOVER_SECONDS, "a topic is made")
            times = self.restart(number)
            self.ready(self.nodes[number], times)
            other = next(one for one in self.nodes if one not in (number, self.controller()))
            self.nodes[other].kill9()
            self.ready(self.nodes[other], self.restart(other))
        self.check_records(writer.end())
        for node in self.nodes.values():
            self.assertEqual(node.stop(), 0)

    def test_all_are_killed_at_once(self):
        writer = self.writer()
        for order in ((1, 2, 3), (3, 1, 2)):
            time.sleep(1)
            for node in self.nodes.values():
                node.kill9()
            waits = [(self.nodes[number], self.restart(number)) for number in order]
            for node, times in waits:
                self.ready(node, times)
        self.check_records(writer.end())

    def test_a_paused_controller_is_replaced_and_finds_its_place(self):
        writer = self.writer()
        number = self.controller()
        paused = self.nodes.pop(number)
        paused.process.send_signal(signal.SIGSTOP)
        try:
            self.wait_for_controller(other_than=number)
            self.assertTrue(self.created("meanwhile"))
        finally:
            paused.process.send_signal(signal.SIGCONT)
            self.nodes[number] = paused
        wait_until(lambda: "registered again" in paused.log(), FAILOVER_SECONDS, "it is registered again")
        wait_until(self.all_led, FAILOVER_SECONDS, "every partition has a leader")
        # Whoever is asked says the same.
        leaders = set()
        for node in self.nodes.values():
            leaders.add(tuple(one["leader"] for one in node.describe(TOPIC)["partitions"]))
        self.assertEqual(len(leaders), 1)
        self.check_records(writer.end())

    def test_zookeeper_away_and_back(self):
        writer = self.writer()
        time.sleep(0.5)
        self.zookeeper.kill()
        before = len(writer.acknowledged)
        wait_until(lambda: len(writer.acknowledged) > before + 40, 60, "writing goes on")
        refused = self.ctl("--timeout", "3s", "topic", "create", "more")
        self.assertNotEqual(refused.code, 0)
        time.sleep(12)  # longer than a session
        self.zookeeper.start()
        wait_until(lambda: self.created("more"), FAILOVER_SECONDS, "a topic is made again")
        self.check_records(writer.end())
        for node in self.nodes.values():
            self.assertEqual(node.stop(), 0)


if __name__ == "__main__":
    if not available():
        print("skipped: no java or no zookeeper.jar (tools/dev setup installs both)")
        sys.exit(77)
    unittest.main(verbosity=2)
