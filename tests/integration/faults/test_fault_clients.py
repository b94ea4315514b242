"""Two hundred clients of three brokers, whose partitions are led elsewhere again and again, and whose brokers are away in every way there is:
they refuse connections, packets vanish, names are not known, connections end at once. Needs root."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import wait_until  # noqa: E402
from fault_case import SESSION_SECONDS, FaultCase, main  # noqa: E402
from history import History  # noqa: E402
from nemesis import cut, killed, stopped  # noqa: E402

CLIENTS = 200
AWAY_SECONDS = 20
# Until requests that were under way are given up (fault_load) and everybody waits between attempts.
SETTLING_SECONDS = 8
# Accepts connections and ends them.
HANG_UP = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=1024)
while True:
    listener.accept()[0].close()
"""
# Until a client that has waited for so long tries again, and its records are there.
BACK_SECONDS = 30


class Clients(FaultCase):
    RATE = 4

    def begin_many(self):
        self.begin_load(writers=CLIENTS)
        self.runs += CLIENTS // 10  # the next load has other writers
        self.wait_for_all(0)

    def wait_for_all(self, since):
        """Each of the clients has a record acknowledged that was sent since."""
        def writers():
            fields = (line.split() for line in self.load.lines() if line.startswith("a "))
            return {int(field[4]) for field in fields if int(field[6]) >= since}
        began = time.monotonic()
        wait_until(lambda: len(writers()) == CLIENTS, BACK_SECONDS, "every client is served")
        self.say(f"every client is served after {time.monotonic() - began:.1f} s")

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.load.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Many(Clients):
    def test_every_leader_is_lost(self):
        self.begin_many()
        for number in (1, 2, 3):
            self.say(f"kill -9 of broker {number}")
            with killed(self, number):
                self.others_lead(number)
                self.wait_for_all(time.monotonic_ns() // 1000)
            self.whole_again()
        for number in (3, 2, 1):
            self.say(f"broker {number} is stopped")
            with stopped(self, number):
                self.wait_for_all(time.monotonic_ns() // 1000)
            self.whole_again()
        self.finish(longest=SESSION_SECONDS + 3)


def attempts():
    """Connections that programs on this host tried to make since its start, and names that they asked a name server for, at most."""
    counts = {}
    lines = pathlib.Path("/proc/net/snmp").read_text().splitlines()
    for names, values in zip(lines[::2], lines[1::2]):
        kind = names.split()[0]
        counts |= {f"{kind}{name}": int(value) for name, value in zip(names.split()[1:], values.split()[1:])}
    return counts["Tcp:ActiveOpens"], counts["Udp:OutDatagrams"] // 2  # an A and an AAAA


class Away(Clients):
    """The clients know brokers by their names."""

    NETWORK = True

    def setUp(self):
        self.files = {"/etc/hosts": "", "/etc/resolv.conf": "nameserver 127.0.0.1\noptions attempts:1 timeout:1\n"}
        for path, text in self.files.items():
            file = tempfile.NamedTemporaryFile(mode="w", prefix="mq-names-")
            self.addCleanup(file.close)
            file.write(text)
            file.flush()
            os.chmod(file.name, 0o644)
            subprocess.run(["mount", "--bind", file.name, path], check=True, timeout=20)
            self.addCleanup(subprocess.run, ["umount", path], timeout=20)
        self.know_names(True)
        super().setUp()
        self.addresses = ",".join(f"mq{number}.test:9500" for number in self.nodes)

    def place_of(self, number):
        return super().place_of(number) | {"advertised": f"mq{number}.test:9500"}

    def know_names(self, known):
        lines = [f"10.77.0.{number} mq{number}.test\n" for number in (1, 2, 3)] if known else []
        pathlib.Path("/etc/hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))

    @contextlib.contextmanager
    def unnamed(self):
        with killed(self, 1, 2, 3):
            self.know_names(False)
            try:
                yield
            finally:
                self.know_names(True)

    @contextlib.contextmanager
    def hanging_up(self):
        with killed(self, 1, 2, 3):
            listeners = [subprocess.Popen([*self.network.on(host), sys.executable, "-c", HANG_UP, self.network.address(host), "9500"],
                                          stdin=subprocess.DEVNULL) for host in ("b1", "b2", "b3")]
            try:
                yield
            finally:
                for listener in listeners:
                    listener.kill()
                    listener.wait(timeout=20)

    def watch(self, what):
        """That clients that cannot reach anybody are a burden to nobody."""
        time.sleep(SETTLING_SECONDS)
        began, used, tried = time.monotonic(), self.cpu_seconds(), attempts()
        busiest, before = 0, sum(tried)
        while time.monotonic() < began + AWAY_SECONDS:
            time.sleep(0.1)
            now = sum(attempts())
            busiest, before = max(busiest, now - before), now
        seconds = time.monotonic() - began
        share = (self.cpu_seconds() - used) / seconds / CLIENTS
        rates = [(after - earlier) / seconds / CLIENTS for earlier, after in zip(tried, attempts())]
        told = [line for line in History().add(self.load.lines()).logged if line[1] >= began * 1e6]
        lines = max((sum(1 for one in told if one[0] == writer) for writer in {one[0] for one in told}), default=0)
        self.say(f"{what}: each client tries {rates[0]:.2f} connections and {rates[1]:.2f} names a second, at most {busiest} of all within "
                 f"0.1 s, with {100 * share:.3f} % of a core; at most {lines} lines of log")
        self.assertLess(rates[0], 2)
        self.assertLess(rates[1], 2)
        self.assertLess(share, 0.02)
        # One of each broker and of each partition in ten seconds.
        self.assertLessEqual(lines, (len(self.nodes) + self.how_many()) * (AWAY_SECONDS // 10 + 1))

    def test_brokers_are_away_in_every_way(self):
        self.begin_many()
        ways = {"connections are refused": lambda: killed(self, 1, 2, 3),
                "packets vanish": lambda: cut(self, ["clients"], ["b1", "b2", "b3"]),
                "names are not known": self.unnamed,
                "connections end at once": self.hanging_up}
        for what, way in ways.items():
            with way():
                self.watch(what)
            self.wait_for_all(time.monotonic_ns() // 1000)
            self.whole_again()
        self.finish()


if __name__ == "__main__":
    main(needs_network=True)
