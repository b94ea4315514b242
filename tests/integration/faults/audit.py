"""What has to hold in the metadata store, in the brokers' logs and on their disks once everything is healed. Each check returns
what it found, as sentences."""

import json
import re
from collections import Counter

from daemon import ctl
from wire import parse
from zookeeper_client import ZooKeeperClient

# Never right, whatever happened.
BAD = re.compile(r" error (base: check failed|invariant:|runtime:)|AddressSanitizer|ThreadSanitizer|runtime error:")


def signed(value):
    return value >> 1 ^ -(value & 1)


def number(fields, field, default=0):
    return fields.get(field, [default])[0]


def members(fields, field):
    return [(number(one, 1), number(one, 2)) for one in map(parse, fields.get(field, []))]


class Tree:
    """The metadata as ZooKeeper has it."""

    def __init__(self, port, host="127.0.0.1", root="/mq"):
        client = ZooKeeperClient(port, host)
        try:
            self.topics = {name: parse(client.get(f"{root}/topics/{name}")) for name in client.children(f"{root}/topics")}
            self.states = {}
            for uuid in client.children(f"{root}/state"):
                for partition in client.children(f"{root}/state/{uuid}"):
                    self.states[(uuid, int(partition))] = parse(client.get(f"{root}/state/{uuid}/{partition}"))
            self.deleting = client.children(f"{root}/deleting")
            self.live = [int(name) for name in client.children(f"{root}/brokers/live")]
            self.epochs = {int(name): client.read(f"{root}/brokers/epoch/{name}")[1]
                           for name in client.children(f"{root}/brokers/epoch")}
            self.controller = number(parse(client.get(f"{root}/ctl/leader")), 2)
            self.last_elected = number(parse(client.get(f"{root}/ctl/epoch")), 2)
        finally:
            client.close()

    def replicas(self):
        return {(number(topic, 2).hex(), number(one, 1)): replicas_of(one)
                for topic in self.topics.values() for one in map(parse, topic.get(5, []))}


def replicas_of(partition):
    """Packed varints."""
    replicas = []
    for value in partition.get(2, []):
        replicas += list(value) if isinstance(value, bytes) else [value]
    return replicas


def metadata(tree, brokers):
    """No broker is missing, every partition is led by a member of its ISR, which has all its replicas, under the registrations
    they have now; nothing is there that belongs to nobody."""
    findings = []
    if tree.live != sorted(brokers):
        findings.append(f"{tree.live} live, not {sorted(brokers)}")
    if tree.controller not in brokers or tree.controller != tree.last_elected:
        findings.append(f"broker {tree.controller} is the controller, and {tree.last_elected} was elected last")
    if tree.deleting:
        findings.append(f"{tree.deleting} are still being deleted")
    replicas = tree.replicas()
    if set(tree.states) != set(replicas):
        findings.append(f"state without topic, or topic without state: {set(tree.states) ^ set(replicas)}")
    for place, state in tree.states.items():
        leader, isr = signed(number(state, 2)), members(state, 4)
        if leader not in [broker for broker, _ in isr]:
            findings.append(f"{place}: broker {leader} leads, and {isr} is its ISR")
        if sorted(broker for broker, _ in isr) != sorted(replicas.get(place, [])):
            findings.append(f"{place}: {isr} is the ISR of {replicas.get(place)}")
        findings += [f"{place}: the ISR has broker {broker} of registration {epoch}, which is at {tree.epochs.get(broker)}"
                     for broker, epoch in isr if tree.epochs.get(broker) != epoch]
    return findings


def registrations(dump, root="/mq"):
    """Of the ensemble's `dump`: one live node of each broker, one controller, nothing else that goes with a session."""
    nodes = Counter(re.findall(rf"{re.escape(root)}/\S+", dump.split("Sessions with Ephemerals")[-1].split("Connections dump")[0]))
    return [f"{node} {count} times" for node, count in nodes.items()
            if count != 1 or not re.fullmatch(rf"{re.escape(root)}/(brokers/live/\d+|ctl/leader)", node)]


def images(nodes):
    """Every broker says the same of every partition."""
    said = {}
    for broker, node in nodes.items():
        done = node.ctl("partition", "list", "-o", "json")
        items = json.loads(done.out)["items"] if done.code == 0 else done.err
        said.setdefault(json.dumps(items, sort_keys=True), []).append(broker)
    return [] if len(said) == 1 else [f"brokers {brokers} say {image}" for image, brokers in said.items()]


def counters(nodes):
    """No rule was found broken, and nothing was cut below a high watermark."""
    findings = []
    for broker, node in nodes.items():
        done = node.ctl("status", "-o", "json")
        if done.code != 0:
            findings.append(f"broker {broker} does not say how it is: {done.err}")
            continue
        item = next(one for one in json.loads(done.out)["items"] if one["broker"] == broker)
        findings += [f"broker {broker}: {name} is {value}" for name, value in item["counters"].items()
                     if value and (name.startswith("invariant_violations") or "truncated_below" in name)]
    return findings


def log_lines(nodes, allowed=()):
    """Errors that a broker logged, but for those that the test brings about."""
    expected = [re.compile(one) for one in allowed]
    findings = []
    for broker, node in nodes.items():
        for line in node.log().splitlines():
            if BAD.search(line) or (" error " in line and not any(one.search(line) for one in expected)):
                findings.append(f"broker {broker} says: {line}")
    return findings


def logs_on_disk(nodes):
    """Every batch of every log is whole, of brokers that have stopped."""
    findings = []
    for broker, node in nodes.items():
        done = ctl("log", "verify", str(node.data), seconds=120)
        if done.code != 0:
            findings.append(f"broker {broker}: {done.out}{done.err}")
    return findings
