"""mqctl local: a broker of one's own that needs no root, keeps its data, and is stopped by its own process id."""

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

from session import program

import zookeeper


def running(process_id):
    """A process that only waits to be reaped has no command line any more."""
    try:
        return bool(pathlib.Path(f"/proc/{process_id}/cmdline").read_bytes())
    except FileNotFoundError:
        return False


class Local(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mq-local-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self.mqctl, "local", "down")

    def mqctl(self, *words, stdin=b""):
        done = subprocess.run([program("mqctl"), *words], input=stdin, capture_output=True, timeout=60,
                              env={"XDG_STATE_HOME": str(self.folder), "PATH": "/usr/bin:/bin"})
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def up(self):
        code, out, err = self.mqctl("local", "up", "-o", "json")
        self.assertEqual(code, 0, out + err)
        return json.loads(out)["items"][0]

    def end(self, process_id):
        os.kill(process_id, signal.SIGKILL)
        while running(process_id):
            time.sleep(0.01)

    def test_up_use_down_up_again(self):
        first = self.up()
        self.assertEqual(first["state"], "up")
        address = first["address"]
        self.assertEqual(self.mqctl("-b", address, "topic", "create", "orders", "--partitions", "3")[0], 0)
        self.assertEqual(self.mqctl("-b", address, "produce", "orders", "-K", ":", stdin=b"k1:v1\nk2:v2\n")[0], 0)
        again = self.up()
        self.assertEqual((again["state"], again["process_id"]), ("already_up", first["process_id"]))
        code, out, _ = self.mqctl("local", "down")
        self.assertEqual(code, 0)
        self.assertIn(f"its data stays in {self.folder}/mq", out)
        self.assertFalse(running(first["process_id"]))
        self.assertEqual(self.mqctl("local", "down")[0], 3)
        second = self.up()
        code, out, _ = self.mqctl("-b", second["address"], "consume", "orders", "-e")
        self.assertEqual(sorted(out.split()), ["v1", "v2"])

    def test_what_was_changed_in_the_configuration_stays(self):
        self.up()
        self.assertEqual(self.mqctl("local", "down")[0], 0)
        config = self.folder / "mq" / "broker.toml"
        text = config.read_text() + "[topic.defaults]\npartitions = 5\n"
        config.write_text(text)
        address = self.up()["address"]
        self.assertEqual(config.read_text(), text)
        self.assertEqual(self.mqctl("-b", address, "topic", "create", "orders")[0], 0)
        _, out, _ = self.mqctl("-b", address, "topic", "list", "-o", "json")
        self.assertEqual([topic["partitions"] for topic in json.loads(out)["items"]], [5])

    def test_a_taken_port_is_passed_over(self):
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                taken.bind(("127.0.0.1", 9500))
            except OSError:
                pass  # somebody has it, which is as good
            taken.listen()
            code, out, err = self.mqctl("local", "up")
            self.assertEqual(code, 0, err)
            self.assertNotIn("127.0.0.1:9500 ", out)
            self.assertRegex(out, r"mqctl -b 127\.0\.0\.1:95\d\d topic create orders --partitions 3\n")
            self.assertRegex(out, r"mqctl -b 127\.0\.0\.1:95\d\d produce orders -K :\n")

    def test_a_number_that_another_process_got_is_left_alone(self):
        self.up()
        self.assertEqual(self.mqctl("local", "down")[0], 0)
        bystander = subprocess.Popen(["/bin/sleep", "60"])
        try:
            record = self.folder / "mq" / "local.json"
            record.write_text(json.dumps(
                {"processes": [{"broker": 1, "process_id": bystander.pid, "address": "127.0.0.1:9500"}]}))
            self.assertEqual(self.mqctl("local", "down")[0], 3)
            self.assertIsNone(bystander.poll())
        finally:
            bystander.kill()
            bystander.wait()

    def test_what_keeps_the_broker_from_starting_is_shown(self):
        (self.folder / "mq").mkdir()
        (self.folder / "mq" / "data").write_text("a file where a folder should be")
        code, _, err = self.mqctl("local", "up")
        self.assertEqual(code, 1)
        self.assertIn(f"error: {self.folder}/mq/data cannot be written", err)

    def test_without_java_several_brokers_are_refused_by_name(self):
        done = subprocess.run([program("mqctl"), "local", "up", "-n", "3"], capture_output=True, timeout=60,
                              env={"XDG_STATE_HOME": str(self.folder), "PATH": "/nonexistent"})
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"several brokers need a ZooKeeper, and there is no java in the PATH", done.stderr)
        self.assertIn(b"apt install --no-install-recommends libzookeeper-java", done.stderr)
        done = subprocess.run([program("mqctl"), "local", "up", "-n", "3"], capture_output=True, timeout=60,
                              env={"XDG_STATE_HOME": str(self.folder), "PATH": "/usr/bin:/bin",
                                   "MQ_ZOOKEEPER_JARS": "/nonexistent", "JAVA_HOME": "/nonexistent"})
        if shutil.which("java"):
            self.assertIn(b"/nonexistent/zookeeper.jar is not there", done.stderr)

    @unittest.skipUnless(zookeeper.available(), "no java or no /usr/share/java/zookeeper.jar")
    def test_three_brokers_with_a_zookeeper(self):
        code, out, err = self.mqctl("local", "up", "-n", "3", "-o", "json")
        self.assertEqual(code, 0, out + err)
        items = json.loads(out)["items"]
        self.assertEqual([item["broker"] for item in items], [None, 1, 2, 3])
        brokers = ",".join(item["address"] for item in items[1:])
        self.assertEqual(self.mqctl("-b", brokers, "health", "--wait", "20s")[0], 0)
        self.assertEqual(self.mqctl("-b", brokers, "topic", "create", "orders", "--partitions", "6")[0], 0)
        self.assertEqual(self.mqctl("-b", brokers, "produce", "orders", "-K", ":", stdin=b"k1:v1\nk2:v2\n")[0], 0)
        code, out, err = self.mqctl("local", "up")
        self.assertEqual(code, 1)
        self.assertIn("a local cluster is up here", err)
        # What was killed comes back with the same command; the others stay.
        self.end(items[2]["process_id"])
        code, out, err = self.mqctl("local", "up", "-n", "3", "-o", "json")
        self.assertEqual(code, 0, out + err)
        again = json.loads(out)["items"]
        self.assertEqual([item["state"] for item in again], ["already_up", "already_up", "up", "already_up"])
        self.assertEqual(self.mqctl("-b", brokers, "health", "--wait", "30s")[0], 0)
        # One that cannot start is named, and the others are there.
        self.end(again[1]["process_id"])
        config = self.folder / "mq" / "cluster" / "broker-1" / "broker.toml"
        text = config.read_text()
        config.write_text(text + "[limits]\nconnections = 0\n")
        code, out, err = self.mqctl("local", "up", "-n", "3")
        self.assertEqual(code, 1, out + err)
        self.assertIn("error: broker 1 did not start", err)
        self.assertIn("limits.connections: expected a number from 1 to 1000000, got 0", err)
        self.assertIn(f"  export MQCTL_BROKERS={again[2]['address']},{again[3]['address']}\n", out)
        config.write_text(text)
        code, out, err = self.mqctl("local", "up", "-n", "3", "-o", "json")
        self.assertEqual(code, 0, out + err)
        again = json.loads(out)["items"]
        self.assertEqual([item["state"] for item in again], ["already_up", "up", "already_up", "already_up"])
        code, out, err = self.mqctl("local", "down")
        self.assertEqual(code, 0, err)
        for item in again:
            self.assertFalse(running(item["process_id"]), item)
        code, out, err = self.mqctl("local", "up", "-n", "3", "-o", "json")
        self.assertEqual(code, 0, out + err)
        code, out, _ = self.mqctl("-b", json.loads(out)["items"][3]["address"], "consume", "orders", "-e")
        self.assertEqual(sorted(out.split()), ["v1", "v2"])

    def test_no_home_is_said(self):
        done = subprocess.run([program("mqctl"), "local", "up"], capture_output=True, env={}, timeout=30)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"neither XDG_STATE_HOME nor HOME is set", done.stderr)


if __name__ == "__main__":
    os.environ.setdefault("MQ_BIN", "build/dev/bin")
    unittest.main(verbosity=2)
