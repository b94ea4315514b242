"""Hosts for brokers and ZooKeeper servers: network namespaces on a bridge, whose other side is this process's own namespace, where
the clients are. A host can be made deaf to another one, which is one direction of a cut, or lose a part of what comes in."""

import os
import shutil
import subprocess
import sys

from commands import run

INSIDE = "MQ_TEST_OWN_NETWORK"
SUBNET = "10.77.0"
CLIENTS = f"{SUBNET}.254"
TOOLS = ["unshare", "nsenter", "ip", "nft", "mount", "umount"]


class Network:
    def __init__(self, **hosts):
        """name=last part of its address"""
        self.addresses = {name: f"{SUBNET}.{part}" for name, part in hosts.items()} | {"clients": CLIENTS}
        self.deaf = set()  # (host, whom it does not hear)
        self.losses = {}  # host: percent of what comes in from other brokers
        run("ip", "link", "add", "hosts", "type", "bridge")
        run("ip", "address", "add", f"{CLIENTS}/24", "dev", "hosts")
        run("ip", "link", "set", "hosts", "up")
        for name in hosts:
            run("ip", "netns", "add", name)
            run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", f"to-{name}", "master", "hosts", "up")
            for words in (["address", "add", f"{self.addresses[name]}/24", "dev", "eth0"], ["link", "set", "eth0", "up"],
                          ["link", "set", "lo", "up"]):
                run(*self.on(name), "ip", *words)

    def on(self, name):
        """What a command begins with that runs on a host; it becomes the command."""
        return [] if name == "clients" else ["nsenter", f"--net=/run/netns/{name}", "--"]

    def address(self, name):
        return self.addresses[name]

    def _write(self, host):
        rules = "".join(f"ip saddr {self.addresses[other]} drop\n" for one, other in sorted(self.deaf) if one == host)
        if percent := self.losses.get(host):
            others = ", ".join(address for name, address in self.addresses.items() if name not in (host, "clients"))
            rules += f"ip saddr {{ {others} }} numgen random mod 100 < {percent} drop\n"
        text = f"flush ruleset\ntable ip cut {{\nchain in {{\ntype filter hook input priority 0\n{rules}}}\n}}\n"
        run(*self.on(host), "nft", "-f", "-", text=text)

    def cut_one_way(self, pairs):
        """(host, whom it does not hear any more)"""
        self.deaf |= set(pairs)
        for host in {host for host, _ in pairs}:
            self._write(host)

    def cut(self, some, others):
        self.cut_one_way([(one, other) for one in some for other in others] + [(other, one) for one in some for other in others])

    def lose(self, percent, hosts):
        """Packets that come from other hosts, but not from clients."""
        for host in hosts:
            self.losses[host] = percent
            self._write(host)

    def mend(self):
        hosts = {host for host, _ in self.deaf} | set(self.losses)
        self.deaf, self.losses = set(), {}
        for host in hosts:
            self._write(host)

    def end(self):
        for name in self.addresses:
            if name != "clients":
                subprocess.run(["ip", "link", "del", f"to-{name}"], capture_output=True, timeout=60)
                subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=60)
        subprocess.run(["ip", "link", "del", "hosts"], capture_output=True, timeout=60)


def missing():
    """Why there can be no hosts here; None: there can."""
    if os.geteuid() != 0:
        return "needs to be root"
    for tool in TOOLS:
        if shutil.which(tool) is None:
            return f"needs {tool}"
    probe = subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, timeout=60)
    return None if probe.returncode == 0 else "may not make namespaces"


def inside():
    return INSIDE in os.environ


def run_inside():
    """Runs this program again with a network, mounts and processes of its own, which end with it, however it ends."""
    script = ("ip link set lo up && mkdir -p /run/netns && mount -t tmpfs none /run/netns && "
              "{ echo 0 >/proc/sys/net/bridge/bridge-nf-call-iptables || true; } 2>/dev/null; exec \"$@\"")
    command = ["unshare", "--net", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc",
               "sh", "-c", script, "sh", sys.executable, "-B", *sys.argv]
    return subprocess.run(command, env=os.environ | {INSIDE: "1"}).returncode
