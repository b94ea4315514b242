"""Three brokers from the example configurations that operators start with, and the command line against them."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from daemon import Broker, Case, ctl, program, wait_until
from zookeeper import ZooKeeper, available
from zookeeper_client import ZooKeeperClient

EXAMPLES = pathlib.Path(__file__).parents[3] / "deploy/examples"


class FromExamples(Case):
    def setUp(self):
        super().setUp()
        self.zookeeper = ZooKeeper(EXAMPLES / "zookeeper/zoo.cfg")
        self.addCleanup(self.zookeeper.end)
        self.zookeeper.start()
        self.three = {}
        self.given = {}
        for number in (1, 2, 3):
            broker = Broker(broker_id=number)
            broker.config.write_text((EXAMPLES / "cluster/broker.toml").read_text())
            self.addCleanup(broker.end)
            self.three[number] = broker
            self.start(number)
        self.all = ",".join(broker.address for broker in self.three.values())

    def start(self, number):
        """What differs on this machine from three of one's own."""
        broker = self.three[number]
        self.given[number] = [
            "--set", f"broker.id={number}", "--set", f"broker.metadata=zookeeper://127.0.0.1:{self.zookeeper.port}/mq",
            "--set", f"storage.disk.path={broker.data}", "--set", f"listener.clients.bind={broker.address}",
            "--set", f"listener.clients.advertised={broker.address}"]
        broker.start(*self.given[number])

    def ctl(self, *words, stdin=b"", code=0, brokers=None):
        done = ctl("-b", brokers or self.all, *words, stdin=stdin)
        self.assertEqual(done.code, code, f"{words}: {done.out}{done.err}")
        return done

    def items(self, *words, **options):
        return json.loads(self.ctl(*words, "-o", "json", **options).out)["items"]

    def healthy(self, level="3"):
        return ctl("-b", self.all, "health", "--level", level).code == 0

    def test_a_topic_lives_on_all_of_them_and_follows_them(self):
        self.ctl("health", "--wait", "20s")
        self.ctl("topic", "create", "orders", "--partitions", "12", "--replicas", "1")
        leaders = {item["leader"] for item in self.items("partition", "list")}
        self.assertEqual(leaders, {1, 2, 3})
        self.assertEqual([item["state"] for item in self.items("broker", "list")], ["up"] * 3)
        lines = [f"k{i}:v{i}" for i in range(300)]
        self.ctl("produce", "orders", "-K", ":", stdin="\n".join(lines).encode())
        read = self.ctl("consume", "orders", "-e", "-f", "%k:%v\\n", brokers=self.three[2].address).out.split()
        self.assertEqual(sorted(read), sorted(lines))
        # Any one of the addresses may be dead.
        start = time.monotonic()
        self.assertEqual(self.items("topic", "list", brokers=f"127.0.0.1:1,{self.three[3].address}")[0]["records"], 300)
        self.assertLess(time.monotonic() - start, 5)
        # Changes go to the controller, whoever is asked.
        for age, broker in zip(("8d", "9d", "10d"), self.three.values()):
            self.ctl("topic", "alter", "orders", "-c", f"retention.age={age}", brokers=broker.address)
            settings = self.items("topic", "describe", "orders")[0]["settings"]
            self.assertEqual(settings["retention.age"], {"value": age, "origin": "topic"})
        self.ctl("topic", "add-partitions", "orders", "--total", "15")
        self.assertEqual(self.items("topic", "list")[0]["partitions"], 15)

        # One goes: it is named, its partitions have no leader, the others go on, also without the controller.
        gone = int(self.items("broker", "describe", "1")[0]["controller"])
        self.three[gone].kill9()
        wait_until(lambda: self.items("partition", "list", "--leaderless"), 30, "partitions without a leader")
        self.assertEqual({item["replicas"][0] for item in self.items("partition", "list", "--leaderless")}, {gone})
        states = {item["broker"]: item["state"] for item in self.items("broker", "list")}
        self.assertEqual(states.pop(gone), "away")
        self.assertEqual(set(states.values()), {"up"})
        self.ctl("health", code=10)
        self.assertIn(f"broker {gone} ", self.ctl("status").out)
        wait_until(lambda: ctl("-b", self.all, "topic", "create", "news", "--partitions", "4", "--replicas", "1").code == 0, 30, "a topic is made")
        self.assertEqual(self.items("partition", "list", "news", "--broker", str(gone)), [])
        # It comes back, and so does everything that was on it.
        self.start(gone)
        wait_until(self.healthy, 30, "all is well")
        read = self.ctl("consume", "orders", "-e", "-f", "%k:%v\\n").out.split()
        self.assertEqual(sorted(read), sorted(lines))
        for broker in self.three.values():
            self.assertEqual(broker.stop(), 0)

    def run_beside(self, *words, stdin=None):
        """mqctl that goes on; what it has printed so far."""
        out = tempfile.NamedTemporaryFile(mode="w+", prefix="mq-out-")
        self.addCleanup(out.close)
        process = subprocess.Popen([program("mqctl"), "-b", self.all, *words], stdin=stdin, stdout=out, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return lambda: pathlib.Path(out.name).read_text()

    def test_partitions_that_are_added_are_used_by_whoever_runs(self):
        self.ctl("health", "--wait", "20s")
        self.ctl("topic", "create", "orders", "--partitions", "2", "--replicas", "1")
        numbers = subprocess.Popen(["seq", "1000000"], stdout=subprocess.PIPE)
        self.addCleanup(numbers.wait)
        self.addCleanup(numbers.kill)
        self.addCleanup(numbers.stdout.close)
        written = self.run_beside("produce", "orders", "--rate", "500", "--print", "%p", stdin=numbers.stdout)
        read = self.run_beside("consume", "orders", "-f", "%p\\n")
        wait_until(lambda: {"0", "1"} <= set(written().split()) and {"0", "1"} <= set(read().split()), 20, "both run")
        self.ctl("topic", "add-partitions", "orders", "--total", "5")
        every = {"0", "1", "2", "3", "4"}
        wait_until(lambda: set(written().split()) == every, 15, "the producer uses all")
        wait_until(lambda: set(read().split()) == every, 15, "the consumer reads all")

    def test_an_emptied_directory_is_an_alarm_until_somebody_knows(self):
        self.ctl("health", "--wait", "20s")
        self.ctl("topic", "create", "single", "--partitions", "3", "--replicas", "1")
        self.ctl("topic", "create", "double", "--partitions", "3", "--replicas", "3")
        for name in ("single", "double"):
            self.ctl("produce", name, "-K", ":", stdin="\n".join(f"k{i}:v{i}" for i in range(60)).encode())
        self.ctl("broker", "can-stop", "1", code=10)
        lost = next(item["partition"] for item in self.items("partition", "list", "single") if item["leader"] == 1)
        self.three[1].stop()
        shutil.rmtree(self.three[1].data)
        self.start(1)
        wait_until(lambda: f"single/{lost} " in ctl("-b", self.all, "health").out, 20, "the alarm")
        self.assertNotIn("double/", ctl("-b", self.all, "health").out)
        self.assertEqual(len(self.ctl("consume", "double", "-e").out.split()), 60)
        self.assertGreaterEqual(self.items("partition", "describe", f"single/{lost}")[0]["loss_epoch"], 1)
        # It outlives brokers, until it is acknowledged.
        self.assertEqual(self.three[1].stop(), 0)
        self.start(1)
        self.assertIn(f"single/{lost} ", ctl("-b", self.all, "health").out)
        self.ctl("partition", "acknowledge-loss", f"single/{lost}")
        wait_until(self.healthy, 20, "all is well")

    def edit_metadata(self, change):
        client = ZooKeeperClient(self.zookeeper.port)
        try:
            return change(client)
        finally:
            client.close()

    def test_a_damaged_topic_node_harms_that_topic_alone_until_it_is_mended(self):
        self.ctl("health", "--wait", "20s")
        for name in ("orders", "other"):
            self.ctl("topic", "create", name, "--partitions", "3", "--replicas", "1")
            self.ctl("produce", name, "-K", ":", stdin="\n".join(f"k{i}:v{i}" for i in range(60)).encode())
        value = self.edit_metadata(lambda client: client.get("/mq/topics/orders"))
        self.edit_metadata(lambda client: client.set("/mq/topics/orders", b"\xff\xff"))
        controller = int(self.items("broker", "describe", "1")[0]["controller"])
        self.assertEqual(self.three[controller].stop(), 0)
        wait_until(lambda: "/topics/orders does not parse" in ctl("-b", self.all, "health").out, 30, "the node is named")
        self.three[controller].launch(*self.given[controller])
        living = next(number for number in self.three if number != controller)
        self.ctl("topic", "delete", "orders", "--yes", code=6, brokers=self.three[living].address)
        # The broker that waits for it opens nothing new, and says so at once.
        wait_until(lambda: sorted(item["state"] for item in self.items("broker", "list")) == ["silent", "up", "up"], 20, "it has registered")
        began = time.monotonic()
        fresh = ctl("-b", self.three[living].address, "topic", "create", "fresh", "--partitions", "3", "--replicas", "1")
        self.assertNotEqual(fresh.code, 0)
        self.assertIn("waits at its start", fresh.err)
        self.assertIn("/topics/orders", fresh.err)
        self.assertLess(time.monotonic() - began, 20)
        # Once it is mended everything is as it was: no log was put away as nobody's.
        self.edit_metadata(lambda client: client.set("/mq/topics/orders", value))
        wait_until(self.healthy, 40, "all is well")
        for name in ("orders", "other"):
            self.assertEqual(len(self.ctl("consume", name, "-e").out.split()), 60)
        for broker in self.three.values():
            self.assertFalse((broker.data / "unknown").exists())

    def test_a_registration_that_is_removed_is_made_again(self):
        self.ctl("health", "--wait", "20s")
        self.ctl("topic", "create", "orders", "--partitions", "6", "--replicas", "1")
        for node in ("live", "epoch"):
            self.edit_metadata(lambda client: client.remove(f"/mq/brokers/{node}/2"))
            wait_until(lambda: self.three[2].log().count("registered again") == (1 if node == "live" else 2), 20, "it registers")
            wait_until(self.healthy, 20, "all is well")

    def test_a_leader_is_chosen_by_hand(self):
        self.ctl("health", "--wait", "20s")
        self.ctl("topic", "create", "orders", "--partitions", "1", "--replicas", "3")
        for broker in (2, 3, 1):
            self.ctl("partition", "elect-leader", "orders/0", "--broker", str(broker))
            wait_until(lambda: self.items("partition", "list", "orders")[0]["leader"] == broker, 5, "it leads")
        described = self.items("partition", "describe", "orders/0")[0]
        self.assertEqual({one["broker"] for one in described["followers"]}, {2, 3})
        self.assertEqual(self.items("partition", "list", "--at-min-isr"), [])
        self.ctl("partition", "elect-leader", "orders/0", "--broker", "9", code=1)
        wait_until(lambda: ctl("-b", self.all, "broker", "can-stop", "2").code == 0, 10, "one may stop")

    def test_settings_in_force_are_shown_for_each(self):
        shown = self.items("config", "show", "--changed")
        ids = {item["broker"]: item["value"] for item in shown if item["key"] == "broker.id"}
        self.assertEqual(ids, {1: "1", 2: "2", 3: "3"})
        self.assertIn("--set", {item["origin"] for item in shown})


class Readme(unittest.TestCase):
    def test_its_line_makes_a_good_configuration_of_the_example(self):
        readme = (EXAMPLES.parents[1] / "README.md").read_text()
        line = next(line for line in readme.splitlines() if line.startswith("sed ") and "cluster/broker.toml" in line)
        with tempfile.TemporaryDirectory(prefix="mq-readme-") as folder:
            line = line.replace("/usr/share/doc/mq/examples", str(EXAMPLES)).replace("/etc/mq", folder)
            subprocess.run(["bash", "-ec", f"number=3; {line}"], check=True, timeout=30)
            done = subprocess.run([program("mqbroker"), "--check", "--config", f"{folder}/broker.toml"],
                                  capture_output=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        out = done.stdout.decode()
        self.assertRegex(out, r"(?m)^broker\.id = 3 ")
        self.assertRegex(out, r'(?m)^listener\.clients\.advertised = "mq3:9500"')
        self.assertRegex(out, r'(?m)^broker\.metadata = "zookeeper://zk1:2181,zk2:2181,zk3:2181/mq"')


if __name__ == "__main__":
    if not available():
        print("skipped: no java or no /usr/share/java/zookeeper.jar (packages libzookeeper-java, default-jre-headless)")
        sys.exit(77)
    unittest.main(verbosity=2)
