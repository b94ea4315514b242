"""Three brokers with three replicas of each partition (half of the topics `disk`, half `memory`), four writers and a reader, a fault, and
everything that has to hold afterwards. A test is: `with load, with some fault: wait`, and finish()."""

import json
import os
import shutil
import sys
import time
import unittest

import audit
import history
import load
import network
import zookeeper
from daemon import wait_until
from ensemble import Ensemble
from small_disk import SmallDisk
from three_brokers import FAILOVER_SECONDS, Replicated

SKIPPED = 77
SESSION_SECONDS = 6
# Between two faults, so that writers find everybody again.
CALM_SECONDS = 2
# Figures are printed. Asserted is only that things end, with slack for a machine that does other things besides.
SLACK = float(os.environ.get("MQ_FAULT_SLACK", 10))


class FaultCase(Replicated):
    TOPICS = {"safe": (3, ("durability=disk", "min_isr=2")), "fast": (3, ("durability=memory", "min_isr=2"))}
    NETWORK = False  # brokers 1, 2, 3 on hosts b1, b2, b3, ZooKeeper on host zk or zk1, zk2, zk3; clients on host clients
    DISKS = None  # kind and size of a file system for each broker, such as ("ext4", 512)
    ZOOKEEPERS = 1
    RATE = int(os.environ.get("MQ_FAULT_RATE", "500"))  # of each of the four writers
    VALUE_BYTES = 300  # at most
    LOAD = {}  # more of the load's environment (load_main.cc)
    # Errors in the brokers' logs that a fault brings about.
    EXPECTED_ERRORS = ()
    CHECKERS = tuple(history.CHECKERS)

    def setUp(self):
        self.network = None
        self.disks = {}
        if self.NETWORK:
            servers = {"zk": 11} if self.ZOOKEEPERS == 1 else {f"zk{number}": 10 + number for number in (1, 2, 3)}
            self.network = network.Network(b1=1, b2=2, b3=3, **servers)
            self.addCleanup(self.network.end)
        if self.DISKS:
            self.disks = {number: SmallDisk(*self.DISKS) for number in (1, 2, 3)}
            for disk in self.disks.values():
                self.addCleanup(disk.end)
        self.expected_errors = list(self.EXPECTED_ERRORS)
        self.history = history.History()
        self.runs = 0
        super().setUp()
        self.wait_until_whole()
        self.begun = time.monotonic()

    def start_zookeeper(self):
        if self.ZOOKEEPERS == 3:
            return self.start_ensemble()
        options = {"host": self.network.address("zk"), "wrapper": self.network.on("zk")} if self.network else {}
        self.zookeeper = zookeeper.ZooKeeper(**options)
        self.addCleanup(self.zookeeper.end)
        self.zookeeper.start()
        return [f"zookeeper://{self.zookeeper.host}:{self.zookeeper.port}/mq"] * 3

    def server_options(self):
        """More of each ZooKeeper server, as functions of its number."""
        return {}

    def start_ensemble(self):
        options = {}
        if self.network:
            options = {"host": lambda number: self.network.address(f"zk{number}"), "wrapper": lambda number: self.network.on(f"zk{number}")}
        self.ensemble = Ensemble(**options, **self.server_options())
        self.addCleanup(self.ensemble.end)
        self.ensemble.start()
        self.zookeeper = self.ensemble.servers[1]
        places = [f"{server.host}:{server.port}" for server in self.ensemble.servers.values()]
        # Every broker knows all servers but begins with another one.
        return [f"zookeeper://{','.join(places[i:] + places[:i])}/mq" for i in range(3)]

    def place_of(self, number):
        place = {}
        if self.network:
            place = {"bind": self.network.address(f"b{number}"), "port": 9500}
        if self.disks:
            place["data"] = self.disks[number].path / "data"
        return place

    def broker(self, extra="", **options):
        broker = super().broker(extra, **options)
        if self.network:
            broker.wrapper = self.network.on(f"b{options['broker_id']}")
        return broker

    def say(self, text):
        print(f"  {time.monotonic() - self.begun:6.1f} s  {text}", flush=True)

    # Load

    def begin_load(self, writers=4, rate=None):
        partitions = next(iter(self.TOPICS.values()))[0]
        running = load.Load(self.addresses, self.TOPICS, partitions, writers, rate or self.RATE, first=10 * self.runs,
                            value_bytes=self.VALUE_BYTES, environment=self.LOAD)
        self.runs += 1
        self.addCleanup(running.end)
        self.load = running
        self.writes_go_on(seconds=60)
        self.say("load runs")
        return running

    def writes_go_on(self, records=200, seconds=SESSION_SECONDS + 3 + SLACK):
        before = self.load.acknowledged()
        wait_until(lambda: self.load.acknowledged() >= before + records, seconds, "records are acknowledged")

    def end_load(self):
        self.history.add(self.load.stop(), "the load")
        if self.load.process.returncode != 0:
            self.fail(self.load.said())

    # What has to hold

    def not_whole(self):
        """What is not as it has to be in the metadata store, and in what the brokers know of it."""
        try:
            return audit.metadata(self.tree(), self.nodes) + audit.images(self.nodes)
        except (OSError, EOFError, KeyError) as error:
            return [f"ZooKeeper: {error!r}"]

    def whole_again(self, seconds=30 + SLACK):
        began = time.monotonic()
        while findings := self.not_whole():
            if time.monotonic() > began + seconds:
                self.fail(f"not whole within {seconds} s: " + "\n".join(findings))
            time.sleep(0.1)
        self.say(f"whole again after {time.monotonic() - began:.1f} s")
        time.sleep(CALM_SECONDS)

    def finish(self, longest=None, failures_allowed=True, losses=()):
        """All is healed: `longest` is how long a partition may have been without an acknowledgement. Of the topics `losses` records may be
        missing, but then their partitions say so."""
        self.whole_again()
        self.writes_go_on()
        self.end_load()
        self.writes_everywhere()
        self.read_everything()
        findings = self.check_history(losses)
        findings["metadata"] = self.not_whole() + audit.registrations(self.zookeeper.ask("dump"))
        findings["counters"] = [] if losses else audit.counters(self.nodes)
        if not failures_allowed:
            findings["failures"] = history.few([f"{one}" for one in self.history.failed])
        outages = history.outages(self.history)
        print(f"  {len(self.history.acknowledged)} acknowledged, {len(self.history.failed)} failed; longest without: "
              f"{max(outages.values()):.2f} s", flush=True)
        if longest is not None and max(outages.values()) > longest + SLACK:
            findings["outage"] = [f"{outages}, not {longest} s"]
        self.check_logs_are_equal()
        findings["logs"] = audit.logs_on_disk(self.nodes) + audit.log_lines(self.nodes, self.expected_errors)
        self.report({name: found for name, found in findings.items() if found})

    def check_history(self, losses):
        kept = self.history.of(set(self.TOPICS) - set(losses))
        findings = history.check(kept, without=[history.results], checkers=self.CHECKERS)
        findings["results"] = history.few(history.results(self.history))
        for topic in losses:
            part = self.history.of({topic})
            missing = {place for place in history.lost_places(part) if self.loss_of(*place) < 0}
            findings[f"silent losses of {topic}"] = [f"{place}" for place in sorted(missing)]
            self.say(f"{len(history.lost_writes(part))} records of {topic} were lost")
        return findings

    def loss_of(self, topic, partition):
        done = self.ctl("partition", "describe", f"{topic}/{partition}", "-o", "json")
        self.assertEqual(done.code, 0, done.err)
        return json.loads(done.out)["items"][0]["loss_epoch"]

    def report(self, findings):
        if findings:
            text = "\n".join(f"{name}: {finding}" for name, found in findings.items() for finding in found)
            print(text, flush=True)
            self.fail("this does not hold")

    def tree(self):
        if self.ZOOKEEPERS > 1:
            self.zookeeper = next((one for number, one in self.ensemble.servers.items() if self.ensemble.mode(number)), self.zookeeper)
        return audit.Tree(self.zookeeper.port, self.zookeeper.host)

    def writes_everywhere(self):
        """Each partition takes a record and gives it back within a minute."""
        self.begin_load(writers=1, rate=100)
        places = {(name, number) for name, (partitions, _) in self.TOPICS.items() for number in range(partitions)}

        def reached():
            fresh = history.History().add(self.load.lines())
            return {one.place for one in fresh.acknowledged} == places and {one.place for one in fresh.sessions[0].reads} == places

        wait_until(reached, 60, "every partition is written and read")
        self.end_load()

    def read_everything(self):
        partitions = next(iter(self.TOPICS.values()))[0]
        self.history.add(load.drain(self.addresses, self.TOPICS, partitions, self.VALUE_BYTES), "reading at the end", final=True)

    # Who is who

    def leader_of(self, topic, partition=0):
        found = [one["leader"] for one in self.partitions(topic) if one["partition"] == partition]
        return found[0] if found else -1

    def others_lead(self, *numbers, seconds=FAILOVER_SECONDS):
        wait_until(lambda: self.partitions() and not any(one["leader"] in (-1, *numbers) for one in self.partitions()), seconds, "others lead")


def main(needs_network=False, needs_disks=False, needs=()):
    missing = None
    if not zookeeper.available():
        missing = "no java or no zookeeper.jar (tools/dev setup installs both)"
    elif not load.available():
        missing = f"no {load.PROGRAM}: build fault_load"
    elif needs_network or needs_disks:
        tools = ["mkfs.ext4", "mkfs.xfs", "xfs_io"] if needs_disks else []
        missing = network.missing() or next((f"needs {tool}" for tool in [*tools, *needs] if shutil.which(tool) is None), None)
    else:
        missing = next((f"needs {tool}" for tool in needs if shutil.which(tool) is None), None)
    if missing:
        print(f"skipped: {missing}")
        sys.exit(SKIPPED)
    if (needs_network or needs_disks) and not network.inside():
        sys.exit(network.run_inside())
    unittest.main(verbosity=2)
