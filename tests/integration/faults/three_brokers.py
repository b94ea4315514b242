"""Three brokers on a ZooKeeper, and records written to them all the time, for the tests of what may happen to such a cluster."""

import hashlib
import json
import threading

from daemon import Case, ctl, wait_until
from zookeeper import ZooKeeper

TOPIC = "orders"
PARTITIONS = 9
# Until another controller serves: the session time of ten seconds, a tick, and the new one's start, with slack.
FAILOVER_SECONDS = 40
# Until a follower that was away is back in the ISR.
RETURN_SECONDS = 30


class Writer(threading.Thread):
    """Writes numbered records, one command after the other, and remembers which were acknowledged."""

    def __init__(self, addresses, name="v"):
        super().__init__(daemon=True)
        self.addresses = addresses
        self.prefix = name
        self.acknowledged = set()
        self.ended = threading.Event()
        self.number = 0

    def run(self):
        while not self.ended.is_set():
            lines = [f"k{self.number + i}:{self.prefix}-{self.number + i}" for i in range(20)]
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
    REPLICAS = 1
    # name: partitions and settings
    TOPICS = {TOPIC: (PARTITIONS, ())}

    def start_zookeeper(self):
        """What each broker has as its metadata place."""
        self.zookeeper = ZooKeeper()
        self.addCleanup(self.zookeeper.end)
        self.zookeeper.start()
        return [f"zookeeper://127.0.0.1:{self.zookeeper.port}/mq"] * 3

    def place_of(self, number):
        """Where a broker is, when that is not loopback and a folder of its own."""
        return {}

    def setUp(self):
        super().setUp()
        places = self.start_zookeeper()
        self.nodes = {number: self.broker(broker_id=number, metadata=places[number - 1], **self.place_of(number))
                      for number in (1, 2, 3)}
        for node in self.nodes.values():
            node.launch()
        self.addresses = ",".join(node.address for node in self.nodes.values())
        for node in self.nodes.values():
            self.ready(node)
        for name, (partitions, settings) in self.TOPICS.items():
            given = [word for setting in settings for word in ("-c", setting)]
            done = self.ctl("topic", "create", name, "-p", str(partitions), "--replicas", str(self.REPLICAS), *given)
            self.assertEqual(done.code, 0, done.err)

    def ready(self, node, times=1, seconds=60):
        def is_ready():
            if node.process.poll() is not None:
                self.fail(f"a broker ended: {node.log()[-2000:]}")
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
        done = self.ctl("--timeout", "5s", "topic", "create", topic, "-p", "3", "--replicas", str(self.REPLICAS))
        return done.code == 0 or "TOPIC_EXISTS" in done.err

    def partitions(self, *topics):
        """Of these topics, or of all; none when they are not known just now."""
        done = self.ctl("partition", "list", *(topics or self.TOPICS), "-o", "json")
        return json.loads(done.out)["items"] if done.code == 0 else []

    def how_many(self):
        return sum(partitions for partitions, _ in self.TOPICS.values())

    def all_led(self):
        partitions = self.partitions()
        return len(partitions) == self.how_many() and all(one["leader"] in self.nodes for one in partitions)

    def check_records(self, acknowledged):
        wait_until(self.all_led, FAILOVER_SECONDS, "every partition has a leader")
        done = self.ctl("consume", TOPIC, "-e", "-f", "%k:%v\\n", seconds=120)
        self.assertEqual(done.code, 0, done.err)
        read = done.out.split()
        self.assertTrue(acknowledged, "something was written")
        self.assertEqual(acknowledged - set(read), set(), "acknowledged and lost")

    def writer(self, name="v"):
        writer = Writer(self.addresses, name)
        writer.start()
        self.addCleanup(writer.ended.set)
        return writer


class Replicated(ThreeBrokers):
    """With three replicas of each partition."""

    REPLICAS = 3

    def whole(self):
        partitions = self.partitions()
        return len(partitions) == self.how_many() and all(
            one["leader"] in self.nodes and len(one["in_sync"]) == 3 for one in partitions)

    def wait_until_whole(self, seconds=RETURN_SECONDS + FAILOVER_SECONDS):
        wait_until(self.whole, seconds, "every partition has three replicas in sync")

    def led_by(self, number):
        return sum(1 for one in self.partitions() if one["leader"] == number)

    def write_some(self, writer, records=100):
        before = len(writer.acknowledged)
        wait_until(lambda: len(writer.acknowledged) >= before + records, FAILOVER_SECONDS, "records are acknowledged")

    def write_numbers(self, topic, begin, end):
        """A record each, which is 207 bytes long and begins with its number."""
        lines = "".join(f"{number:06}-{'x' * 200}\n" for number in range(begin, end))
        done = self.ctl("produce", topic, "--compression", "none", stdin=lines.encode())
        self.assertEqual(done.code, 0, done.err)

    def described(self, name):
        done = self.ctl("partition", "describe", name, "-o", "json")
        self.assertEqual(done.code, 0, done.err)
        return json.loads(done.out)["items"][0]

    def check_logs_are_equal(self):
        """After clean stops: the segments of all three brokers, byte for byte."""
        for node in self.nodes.values():
            self.assertEqual(node.stop(), 0)
        contents = []
        for node in self.nodes.values():
            logs = {}
            for segment in sorted(node.data.glob("*-*/*.log")):
                logs.setdefault(segment.parent.name, hashlib.sha256()).update(segment.read_bytes())
            contents.append({name: digest.hexdigest() for name, digest in logs.items()})
        self.assertGreaterEqual(len(contents[0]), self.how_many())
        for name in contents[0]:
            if len({logs.get(name) for logs in contents}) > 1:
                self.fail(f"{name} is not the same everywhere: {self.all_about(name)}")

    def all_about(self, name):
        """Sizes of its segments, and what each broker's log says of it."""
        lines = []
        for number, node in self.nodes.items():
            sizes = {one.name: one.stat().st_size for one in node.data.glob(f"{name}/*.log")}
            lines.append(f"broker {number}: {sizes}")
            lines += [line for line in node.log().splitlines() if name in line][-20:]
        return "\n".join(lines)
