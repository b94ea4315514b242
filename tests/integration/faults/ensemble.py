"""Three ZooKeeper servers that are one ensemble."""

import subprocess

from daemon import free_port
from zookeeper import ZooKeeper


class Ensemble:
    """Three servers; number 1 to 3."""

    def __init__(self, **options):
        """Options of each server are a function of its number."""
        numbers = (1, 2, 3)
        self.servers = {number: ZooKeeper(**{name: value(number) for name, value in options.items()}) for number in numbers}
        self.quorum_ports = {number: free_port() for number in numbers}
        lines = "".join(f"server.{number}={self.servers[number].host}:{port}:{free_port()}\n"
                        for number, port in self.quorum_ports.items())
        for number, server in self.servers.items():
            with open(server.config, "a") as config:
                config.write(f"initLimit=10\nsyncLimit=4\n{lines}")
            (server.data / "myid").write_text(str(number))

    def start(self, numbers=(1, 2, 3)):
        for number in numbers:
            self.servers[number].launch()
        for number in numbers:
            self.servers[number].wait()

    def mode(self, number):
        for line in self.servers[number].ask("srvr").splitlines():
            if line.startswith("Mode:"):
                return line.split()[1]
        return None

    def leader(self):
        return next((number for number in self.servers if self.mode(number) == "leader"), None)

    def cut_from_leader(self, follower, leader):
        """No packet of the connection on which the follower hears its leader passes any more."""
        port = self.quorum_ports[leader]
        process = self.servers[follower].process.pid
        links = subprocess.run(["ss", "-tnpH", "dport", "=", f":{port}"], capture_output=True, text=True, timeout=20).stdout
        mine = [line.split() for line in links.splitlines() if f"pid={process}," in line]
        ports = [fields[3].rsplit(":", 1)[1] for fields in mine]
        rules = "".join(f"tcp sport {{ {one} }} drop\ntcp dport {{ {one} }} drop\n" for one in ports)
        # A new connection to the leader does not get through either.
        nft = (f"table inet cut {{\nchain in {{\ntype filter hook input priority 0\n{rules}"
               f"tcp dport {port} tcp flags syn drop\n}}\n}}\n")
        subprocess.run(["nft", "-f", "-"], input=nft, text=True, check=True, timeout=20)
        return ports

    def mend(self):
        subprocess.run(["nft", "flush", "ruleset"], check=True, timeout=20)

    def end(self):
        for server in self.servers.values():
            server.end()
