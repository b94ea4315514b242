"""Three brokers on one ZooKeeper: kill -9 of the controller and of others, all at once, pauses beyond the session time, and
ZooKeeper away, while records are written. What was acknowledged is there at the end."""

import json
import pathlib
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import Case, ctl, wait_until  # noqa: E402
from zookeeper import ZooKeeper, available  # noqa: E402

TOPIC = "orders"
PARTITIONS = 9
# Until another controller serves: the session time of ten seconds, a tick, and the new one's start, with slack.
FAILOVER_SECONDS = 40


class Writer(threading.Thread):
    """Writes numbered records, one command after the other, and remembers which were acknowledged."""

    def __init__(self, addresses):
        super().__init__(daemon=True)
        self.addresses = addresses
        self.acknowledged = set()
        self.ended = threading.Event()
        self.number = 0

    def run(self):
        while not self.ended.is_set():
            lines = [f"k{self.number + i}:v{self.number + i}" for i in range(20)]
            self.number += len(lines)
            done = ctl("-b", self.addresses, "--timeout", "5s", "produce", TOPIC, "-K", ":",
                       stdin="\n".join(lines).encode(), seconds=60)
            if done.code == 0:
                self.acknowledged.update(lines)

    def end(self):
        self.ended.set()
        self.join(timeout=90)
        return self.acknowledged


class ThreeBrokers(Case):
    def setUp(self):
        super().setUp()
        self.zookeeper = ZooKeeper()
        self.addCleanup(self.zookeeper.end)
        self.zookeeper.start()
        place = f"zookeeper://127.0.0.1:{self.zookeeper.port}/mq"
        self.nodes = {number: self.broker(broker_id=number, metadata=place) for number in (1, 2, 3)}
        for node in self.nodes.values():
            node.launch()
        self.addresses = ",".join(node.address for node in self.nodes.values())
        for node in self.nodes.values():
            self.ready(node)
        self.assertEqual(self.ctl("topic", "create", TOPIC, "-p", str(PARTITIONS)).code, 0)

    def ready(self, node, times=1, seconds=60):
        def is_ready():
            self.assertIsNone(node.process.poll(), "a broker ended")
            return node.log().count(" ready in ") >= times
        wait_until(is_ready, seconds, f"{node.address} is ready")

    def restart(self, number):
        node = self.nodes[number]
        times = node.log().count(" ready in ") + 1
        node.launch()
        return times

    def ctl(self, *words, **options):
        return ctl("-b", self.addresses, *words, **options)

    def controller(self):
        """The broker that leads the cluster, as one that lives says it; nothing: nobody is known to."""
        for node in self.nodes.values():
            if node.process is None:
                continue
            done = node.ctl("--timeout", "2s", "status", "-o", "json")
            if done.code == 0:
                number = json.loads(done.out)["items"][0].get("controller", -1)
                if number in self.nodes:
                    return number
        return None

    def wait_for_controller(self, other_than):
        wait_until(lambda: self.controller() not in (None, other_than), FAILOVER_SECONDS, "another controller")

    def created(self, topic):
        done = self.ctl("--timeout", "5s", "topic", "create", topic, "-p", "3")
        return done.code == 0 or "TOPIC_EXISTS" in done.err

    def partitions(self):
        done = self.ctl("topic", "describe", TOPIC, "-o", "json")
        return json.loads(done.out)["items"][0]["partitions"] if done.code == 0 else []

    def all_led(self):
        partitions = self.partitions()
        return len(partitions) == PARTITIONS and all(one["leader"] in self.nodes for one in partitions)

    def check_records(self, acknowledged):
        wait_until(self.all_led, FAILOVER_SECONDS, "every partition has a leader")
        done = self.ctl("consume", TOPIC, "-e", "-f", "%k:%v\\n", seconds=120)
        self.assertEqual(done.code, 0, done.err)
        read = done.out.split()
        self.assertTrue(acknowledged, "something was written")
        self.assertEqual(acknowledged - set(read), set(), "acknowledged and lost")

    def writer(self):
        writer = Writer(self.addresses)
        writer.start()
        self.addCleanup(writer.ended.set)
        return writer

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
