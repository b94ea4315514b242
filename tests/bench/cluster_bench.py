"""What a cluster of three brokers on one real ZooKeeper takes for its metadata. Prints one JSON object per line; asserts
nothing about speed. Wants release binaries, and a ZooKeeper server as the tests do:

  MQ_BIN=build/release/bin python3 tests/bench/cluster_bench.py [create|metadata|steady|failover|bootstrap ...]
"""

import json
import pathlib
import socket
import statistics
import sys
import time
from operator import itemgetter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration/cases"))
from daemon import Broker, ctl, wait_until  # noqa: E402
from wire import METADATA, field_bytes, frame, open_session, parse, unzigzag  # noqa: E402
from zookeeper import ZooKeeper  # noqa: E402

BROKERS = 3
MORE_FRAMES = 2  # flag of a frame that is not the last of its answer


def say(what, **values):
    print(json.dumps({"what": what} | values), flush=True)


class Cluster:
    def __init__(self):
        self.zookeeper = ZooKeeper().start()
        self.brokers = [Broker(broker_id=n + 1, metadata=f"zookeeper://127.0.0.1:{self.zookeeper.port}/mq")
                        for n in range(BROKERS)]
        for broker in self.brokers:
            broker.start()
        self.all = ",".join(broker.address for broker in self.brokers)
        wait_until(lambda: ctl("-b", self.all, "health").code == 0, 30, "a healthy cluster")

    def ctl(self, *words):
        done = ctl("-b", self.all, "--timeout", "120s", *words, seconds=150)
        if done.code != 0:
            raise RuntimeError(f"{words}: {done.err}")
        return done

    def items(self, *words):
        return json.loads(self.ctl(*words, "-o", "json").out)["items"]

    def create(self, topic, partitions):
        begun = time.monotonic()
        self.ctl("topic", "create", topic, "--partitions", str(partitions))
        return round(time.monotonic() - begun, 2)

    def delete(self, topic):
        begun = time.monotonic()
        self.ctl("topic", "delete", topic, "--yes")
        return round(time.monotonic() - begun, 2)

    def end(self):
        for broker in self.brokers:
            broker.end()
        self.zookeeper.end()


class Asking:
    """One connection on which metadata is asked for."""

    def __init__(self, broker):
        self.wire = open_session(broker, seconds=30)

    def ask(self, *topics):
        """The headers of one answer, which may come in several frames."""
        self.wire.send(frame(METADATA, b"".join(field_bytes(17, topic.encode()) for topic in topics)))
        headers = []
        while True:
            flags, header = itemgetter(2, 4)(self.wire.answer())
            headers.append(header)
            if not flags & MORE_FRAMES:
                return headers

    def topic(self, name):
        """Who is the controller, and the leader of each partition."""
        headers = self.ask(name)
        partitions = [one for header in headers if 19 in header for one in parse(header[19][0]).get(5, [])]
        return unzigzag(headers[0].get(17, [1])[0]), [unzigzag(parse(one).get(2, [0])[0]) for one in partitions]


def create(cluster):
    for partitions in (1_000, 10_000):
        topic = f"many{partitions}"
        seconds = cluster.create(topic, partitions)
        say("create", partitions=partitions, seconds=seconds)
        say("delete", partitions=partitions, seconds=cluster.delete(topic))


def metadata(cluster):
    cluster.create("wide", 10_000)
    asking = Asking(cluster.brokers[0])
    _, leaders = asking.topic("wide")
    times = []
    for _ in range(30):
        begun = time.monotonic()
        asking.ask("wide")
        times.append((time.monotonic() - begun) * 1e3)
    say("metadata", partitions=len(leaders), p50_ms=round(statistics.median(times), 2), worst_ms=round(max(times), 2))
    cluster.delete("wide")


def steady(cluster):
    """Writes to ZooKeeper while clients work and nothing changes: what its transaction number rises by."""
    cluster.create("calm", 12)
    time.sleep(3)

    def zxid():
        line = next(line for line in cluster.zookeeper.ask("srvr").splitlines() if line.startswith("Zxid"))
        return int(line.split()[1], 16)

    before, begun = zxid(), time.monotonic()
    cluster.ctl("bench", "produce", "--topic", "calm", "--rate", "2000", "--duration", "15s")
    cluster.ctl("bench", "consume", "--topic", "calm", "--bytes", "1MiB")
    seconds = time.monotonic() - begun
    say("steady", seconds=round(seconds, 1), writes=zxid() - before, brokers=BROKERS,
        writes_per_broker_and_second=round((zxid() - before) / seconds / BROKERS, 2))
    cluster.delete("calm")


def failover(cluster):
    """From the moment that ZooKeeper has ended the old controller's session."""
    cluster.create("led", 5_000)
    controller = int(cluster.items("broker", "describe", "1")[0]["controller"])
    dead = cluster.brokers[controller - 1]
    asking = Asking(next(broker for broker in cluster.brokers if broker is not dead))

    def holds():
        return "/mq/ctl/leader" in cluster.zookeeper.ask("dump")

    dead.kill9()
    killed = time.monotonic()
    live = f"/mq/brokers/live/{controller}"
    while live in cluster.zookeeper.ask("dump"):
        time.sleep(0.005)
    detected = time.monotonic()
    while not holds():
        time.sleep(0.005)
    elected = time.monotonic()
    while True:
        leads, leaders = asking.topic("led")
        if leads != controller and leaders and controller not in leaders:
            break
        time.sleep(0.005)
    now = time.monotonic()
    say("failover", partitions=5_000, session_ended_s=round(detected - killed, 2), elected_s=round(elected - detected, 3),
        new_image_s=round(now - detected, 3), leaderless=leaders.count(-1))
    away = leaders.count(-1)
    begun = time.monotonic()
    dead.start()
    while -1 in asking.topic("led")[1]:
        time.sleep(0.005)
    say("return", partitions=away, all_led_s=round(time.monotonic() - begun, 2))
    cluster.delete("led")


def bootstrap(cluster):
    """The first address refuses, or takes no packet (its backlog is full)."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        filling = [socket.socket() for _ in range(4)]
        for one in filling:
            one.setblocking(False)
            one.connect_ex(deaf.getsockname())
        time.sleep(0.2)
        for name, address in (("refuses", "127.0.0.1:1"), ("silent", f"127.0.0.1:{deaf.getsockname()[1]}")):
            begun = time.monotonic()
            done = ctl("-b", f"{address},{cluster.brokers[1].address}", "topic", "list", seconds=30)
            say("bootstrap", first_address=name, code=done.code, seconds=round(time.monotonic() - begun, 2))
        for one in filling:
            one.close()


ALL = {"create": create, "metadata": metadata, "steady": steady, "failover": failover, "bootstrap": bootstrap}


def main(measurements):
    """Those that the command line names, or all, on one cluster."""
    names = sys.argv[1:] or list(measurements)
    unknown = [name for name in names if name not in measurements]
    if unknown:
        sys.exit(f"no measurement {unknown[0]}; known: {', '.join(measurements)}")
    cluster = Cluster()
    try:
        for name in names:
            measurements[name](cluster)
    finally:
        cluster.end()


if __name__ == "__main__":
    main(ALL)
