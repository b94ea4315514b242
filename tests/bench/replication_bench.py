"""What three replicas on one machine cost, and how long a partition stands still when its leader goes. Three brokers on one
real ZooKeeper, topics with three copies of which two must have a record (acks=all). Prints one JSON object per line; asserts
nothing about speed. Wants release binaries, and a ZooKeeper server as the tests do:

  MQ_BIN=build/release/bin python3 tests/bench/replication_bench.py [rate|e2e|kill|stop ...]
"""

import threading
import time

from cluster_bench import main, say

PARTITIONS = 12


def topic(cluster, name, durability="memory", partitions=PARTITIONS):
    cluster.ctl("topic", "create", name, "--partitions", str(partitions), "--replicas", "3", "-c", "min_isr=2",
                "-c", f"durability={durability}")
    return name


def produce(cluster, name, *words):
    return cluster.items("bench", "produce", "--topic", name, "--acks", "all", *words)[0]


def rate(cluster):
    for durability in ("memory", "disk"):
        name = topic(cluster, f"rate-{durability}", durability)
        produce(cluster, name, "--bytes", "256MiB")  # warms up
        for _ in range(3):
            done = produce(cluster, name, "--bytes", "2GiB")
            say("rate", durability=durability, replicas=3, partitions=PARTITIONS,
                mib_per_second=round(done["mib_per_second"], 1), failed=done["failed"],
                broker_cpu_seconds_per_gib=round(done["broker_cpu_seconds_per_gib"], 2),
                client_cpu_seconds_per_gib=round(done["client_cpu_seconds_per_gib"], 2))
        cluster.delete(name)


def e2e(cluster):
    for durability in ("memory", "disk"):
        name = topic(cluster, f"e2e-{durability}", durability, partitions=1)
        for per_second in (1_000, 10_000):
            done = cluster.items("bench", "e2e", "--topic", name, "--acks", "all", "--rate", str(per_second),
                                 "--duration", "15s")[0]
            say("e2e", durability=durability, rate=per_second,
                **{key: round(value, 1) for key, value in done.items() if key.startswith("latency_")})
        cluster.delete(name)


def leader_of(cluster, name):
    done = cluster.items("partition", "list", name)
    return int(done[0]["leader"])


def gap(cluster, name, what, end):
    """The slowest of evenly spaced records, from the moment that each was due: the time in which nothing was taken."""
    topic(cluster, name, partitions=1)
    leader = cluster.brokers[leader_of(cluster, name) - 1]

    def go_and_come_back():
        end(leader)
        time.sleep(10)  # longer than a session
        leader.start()

    timer = threading.Timer(5, go_and_come_back)
    timer.start()
    done = produce(cluster, name, "--rate", "1000", "--duration", "20s", "--linger", "0ms", "--batch-bytes", "16KiB")
    timer.join()
    say("gap", how=what, records=done["records"], failed=done["failed"], longest_ms=round(done["latency_max_us"] / 1e3, 1))
    cluster.delete(name)


def kill(cluster):
    gap(cluster, "killed", "kill -9", lambda broker: broker.kill9())


def stop(cluster):
    gap(cluster, "stopped", "SIGTERM", lambda broker: broker.stop())


ALL = {"rate": rate, "e2e": e2e, "kill": kill, "stop": stop}

if __name__ == "__main__":
    main(ALL)
