"""A real ZooKeeper server on loopback for one test: own folder, own port, ended by its own process id."""

import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from daemon import free_port

JAVA = pathlib.Path("/usr/share/java")


def available():
    return shutil.which("java") is not None and (JAVA / "zookeeper.jar").exists()


class ZooKeeper:
    def __init__(self, example=None, host="127.0.0.1", wrapper=(), data=None):
        """With short ticks, or as in `example`, but alone, on loopback and in a folder of its own; or on another host, where
        `wrapper` runs programs."""
        self.host = host
        self.wrapper = list(wrapper)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mq-zookeeper-"))
        self.port = free_port()
        self.config = self.folder / "zoo.cfg"
        self.data = pathlib.Path(data) if data else self.folder / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        text = "tickTime=500\nadmin.enableServer=false\n4lw.commands.whitelist=*\n"
        if example:
            text = re.sub(r"(?m)^(server\.\d+|dataDir|clientPort)=.*\n", "", example.read_text())
        self.config.write_text(
            f"{text}\ndataDir={self.data}\nclientPortAddress={host}\nclientPort={self.port}\n")
        self.process = None

    def start(self):
        self.launch()
        return self.wait()

    def launch(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*self.wrapper, "java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no", "-cp",
                 f"{JAVA / 'zookeeper.jar'}:{JAVA / 'slf4j-simple.jar'}",
                 "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(self.config)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait(self):
        """Until it serves; one of several does that once most of them are there."""
        deadline = time.monotonic() + 60
        while "Mode:" not in self.ask("srvr"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"ZooKeeper does not serve:\n{(self.folder / 'log').read_text(errors='replace')}")
            time.sleep(0.05)
        return self

    def ask(self, word):
        try:
            with socket.create_connection((self.host, self.port), timeout=1) as link:
                link.sendall(word.encode())
                answer = b""
                while piece := link.recv(65536):
                    answer += piece
                return answer.decode(errors="replace")
        except OSError:
            return ""

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait(timeout=30)
            self.process = None

    def end(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
