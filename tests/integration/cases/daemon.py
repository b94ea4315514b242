"""A real mqbroker with its own data directory and port, and mqctl against it. Everything started
here is ended by its own process id, whatever happens to the test."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ.get("MQ_BIN", "build/dev/bin"))
START_SECONDS = 20


def program(name):
    return str(BIN / name)


def free_port(host="127.0.0.1"):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


class Broker:
    """One data directory and configuration; start() and stop() as often as wanted."""

    def __init__(self, extra="", broker_id=1, folder=None, port=None, bind="127.0.0.1", data=None, advertised=None,
                 environment=None, metadata="local"):
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="mq-case-"))
        self.data = pathlib.Path(data) if data else self.folder / "data"
        self.port = port or free_port(bind)
        self.host = f"[{bind}]" if ":" in bind else bind
        self.address = f"{self.host}:{self.port}"
        self.config = self.folder / f"broker-{broker_id}-{self.port}.toml"
        self.config.write_text(
            f'[broker]\nid = {broker_id}\nmetadata = "{metadata}"\n\n[[storage.disk]]\npath = "{self.data}"\n\n'
            f'[listener.clients]\nbind = "{self.address}"\nadvertised = "{advertised or self.address}"\n{extra}'
        )
        self.log_file = self.folder / f"broker-{broker_id}-{self.port}.log"
        self.environment = environment or {}
        self.wrapper = []  # a program that runs it, which becomes it
        self.process = None

    def launch(self, *flags):
        """Starts the process without waiting for it."""
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                [*self.wrapper, program("mqbroker"), "--config", str(self.config), *flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={k: v for k, v in os.environ.items() if k != "NOTIFY_SOCKET"} | self.environment,
            )
        return self.process

    def start(self, *flags):
        """Returns once it says that it is ready; its port answers a little earlier."""
        before = self.log().count(" ready in ")
        self.launch(*flags)
        deadline = time.monotonic() + START_SECONDS
        while self.log().count(" ready in ") == before:
            if self.process.poll() is not None:
                raise AssertionError(f"mqbroker ended with {self.process.returncode}:\n{self.log()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"mqbroker is not ready:\n{self.log()}")
            time.sleep(0.005)
        return self

    def run_to_end(self, *flags, seconds=15):
        """For a start that must be refused: exit code and everything it wrote."""
        done = subprocess.run(
            [program("mqbroker"), "--config", str(self.config), *flags],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds,
        )
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")

    def stop(self):
        if self.process is None:
            return None
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=30)
        self.process = None
        return code

    def kill9(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait(timeout=30)
            self.process = None

    def log(self):
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def rss(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def ctl(self, *arguments, stdin=b"", seconds=30, address=None):
        return ctl("-b", address or self.address, *arguments, stdin=stdin, seconds=seconds)

    def create(self, topic, *arguments):
        done = self.ctl("topic", "create", topic, *arguments)
        assert done.code == 0, done.err
        return done

    def describe(self, topic):
        done = self.ctl("topic", "describe", topic, "-o", "json")
        assert done.code == 0, done.err
        return json.loads(done.out)["items"][0]

    def end(self):
        self.kill9()
        shutil.rmtree(self.folder, ignore_errors=True)


class Done:
    """What a finished mqctl left."""

    def __init__(self, process):
        self.code = process.returncode
        self.raw = process.stdout
        self.out = process.stdout.decode(errors="replace")
        self.err = process.stderr.decode(errors="replace")


def ctl(*arguments, stdin=b"", seconds=30):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MQCTL_")}
    environment["HOME"] = "/nonexistent"
    environment["NO_COLOR"] = "1"
    return Done(subprocess.run([program("mqctl"), *arguments], input=stdin, capture_output=True,
                               timeout=seconds, env=environment))


class Case(unittest.TestCase):
    """A test with brokers that go with it."""

    def setUp(self):
        self.brokers = []

    def failed(self):
        result = self._outcome.result
        return any(error for _, error in getattr(self._outcome, "errors", None) or []) or \
            any(test is self for test, _ in result.failures + result.errors)

    def tearDown(self):
        failed = self.failed()
        for broker in self.brokers:
            if failed:
                print(f"--- {broker.log_file}\n{broker.log()}")
            broker.end()

    def broker(self, extra="", **options):
        broker = Broker(extra, **options)
        self.brokers.append(broker)
        self.addCleanup(broker.end)  # also when setUp fails
        return broker


def wait_until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")
