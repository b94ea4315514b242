"""Exit codes and endings that scripts rely on, and mistakes in the configuration."""

import contextlib
import os
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from daemon import Case, ctl, free_port, program


class LosesAnswerTo:
    """A relay that hands every frame on, and breaks the connection when the answer to one API comes."""

    def __init__(self, api_key):
        self.api_key = api_key
        self.target = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.target)
            threading.Thread(target=self.copy, args=(client, server), daemon=True).start()
            threading.Thread(target=self.answers, args=(server, client), daemon=True).start()

    @staticmethod
    def copy(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        target.close()

    def answers(self, server, client):
        with contextlib.suppress(OSError, struct.error), server.makefile("rb") as frames:
            while True:
                head = frames.read(6)
                size, key = struct.unpack("<IH", head)
                rest = frames.read(size - 2)
                if key == self.api_key:
                    break
                client.sendall(head + rest)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
        client.close()


class Scripts(Case):
    def test_produce_ends_non_zero_unless_everything_was_acknowledged(self):
        broker = self.broker().start()
        broker.create("t", "--config", "batch.bytes=64KiB")
        dead = f"127.0.0.1:{free_port()}"
        for arguments, stdin, code in [
            (("-b", dead, "--timeout", "2s", "produce", "t"), b"x\n", 6),
            (("-b", broker.address, "produce", "nosuch"), b"x\n", 3),
            (("-b", broker.address, "produce", "t", "-z", "none"), b"x" * 100_000 + b"\n", 1),
            (("-b", broker.address, "produce", "t", "-z", "none"), b"good\n" + b"x" * 100_000 + b"\nalso good\n", 1),
            (("-b", broker.address, "produce", "t"), b"", 0),
        ]:
            done = ctl(*arguments, stdin=stdin)
            self.assertEqual(done.code, code, f"{arguments}: {done.err}")
            self.assertEqual(done.out, "")
            if code != 0:
                self.assertIn("error:", done.err)
                self.assertNotIn("success", done.err.lower())
        self.assertEqual(broker.ctl("consume", "t", "-e").out, "good\nalso good\n")

    # the broker stands still while the input is sent.
    def test_produce_to_a_stopped_broker_ends_non_zero_within_its_timeout(self):
        broker = self.broker().start()
        broker.create("t")
        broker.process.send_signal(signal.SIGSTOP)
        start = time.monotonic()
        done = broker.ctl("--timeout", "2s", "produce", "t", stdin=b"a\nb\n")
        broker.process.send_signal(signal.SIGCONT)
        self.assertNotEqual(done.code, 0)
        self.assertIn("error:", done.err)
        self.assertLess(time.monotonic() - start, 15)

    def test_a_creation_whose_answer_is_lost_is_not_called_undone(self):
        with LosesAnswerTo(api_key=7) as relay:
            broker = self.broker(advertised=f"127.0.0.1:{relay.port}").start()
            relay.target = ("127.0.0.1", broker.port)
            done = broker.ctl("--timeout", "3s", "topic", "create", "t", address=f"127.0.0.1:{relay.port}")
            self.assertNotEqual(done.code, 0)
            self.assertIn("t may or may not have been created", done.err)
            self.assertEqual(broker.describe("t")["name"], "t")

    def test_consume_to_the_end_ends_on_a_busy_topic(self):
        broker = self.broker().start()
        broker.create("busy", "--partitions", "8")
        broker.ctl("produce", "busy", "-p", "0", stdin=b"a\nb\nc\n")
        stop = subprocess.Popen(
            [program("mqctl"), "-b", broker.address, "produce", "busy", "-p", "0"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 1.0
            done = None
            while time.monotonic() < deadline or done is None:
                stop.stdin.write(b"more\n" * 50)
                stop.stdin.flush()
                if done is None and time.monotonic() > deadline - 0.5:
                    start = time.monotonic()
                    done = broker.ctl("consume", "busy", "-e")
                    self.assertLess(time.monotonic() - start, 5)
            self.assertEqual(done.code, 0, done.err)
            self.assertGreaterEqual(len(done.out.splitlines()), 3)
        finally:
            stop.stdin.close()
            stop.wait(timeout=20)

    def test_a_closed_pipe_is_a_quiet_end(self):
        broker = self.broker().start()
        broker.create("t")
        broker.ctl("produce", "t", stdin=b"line\n" * 20_000)
        piped = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {program('mqctl')} -b {broker.address} consume t -e | head -1"],
            capture_output=True, timeout=30)
        self.assertEqual(piped.stdout, b"line\n")
        self.assertEqual(piped.stderr, b"")

    def test_a_full_output_device_is_reported(self):
        broker = self.broker().start()
        broker.create("t")
        broker.ctl("produce", "t", stdin=b"line\n" * 100)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([program("mqctl"), "-b", broker.address, "consume", "t", "-e"],
                                  stdout=full, stderr=subprocess.PIPE, timeout=30)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"[OUTPUT_FAILED]", done.stderr)

    def test_ctrl_c_ends_a_waiting_consumer_with_130(self):
        broker = self.broker().start()
        broker.create("t")
        waiting = subprocess.Popen([program("mqctl"), "-b", broker.address, "consume", "t"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.7)
        waiting.send_signal(signal.SIGINT)
        out, _ = waiting.communicate(timeout=10)
        self.assertEqual(waiting.returncode, 130)
        self.assertEqual(out, b"")


CONFIG = """[broker]
id = 1
metadata = "local"

[[storage.disk]]
path = "{data}"

[listener.clients]
bind = "127.0.0.1:0"
"""


class ConfigMistakes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="mq-case-")
        self.file = pathlib.Path(self.folder.name) / "broker.toml"

    def tearDown(self):
        self.folder.cleanup()

    def check(self, text, *flags, environment=None):
        self.file.write_bytes(text.encode())
        done = subprocess.run([program("mqbroker"), "--config", str(self.file), "--check", *flags],
                              capture_output=True, timeout=20, env={**os.environ, **(environment or {})})
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def good(self):
        return CONFIG.format(data=self.folder.name + "/data")

    def test_each_mistake_is_refused_with_file_line_and_key(self):
        good = self.good()
        cases = [
            (good.replace("id = 1", "idd = 1"), "broker.idd", 2),
            (good.replace("[broker]", "[broker]\nworker = 2"), "worker", 2),
            (good.replace("id = 1", "id = 1\nbind = \"x:1\""), "bind", 3),
            (good.replace("id = 1", "id = 1\nid = 2"), "", 3),
            (good.replace("id = 1", "id = \"one\""), "broker.id", 2),
            (good.replace("id = 1", "id = -1"), "broker.id", 2),
            (good.replace("id = 1", "id = 99999999999999999999"), "", 2),
            (good + "\n[topic.defaults]\n\"retention.age\" = 10\n", "retention.age", 12),
            (good + "\n[topic.defaults]\n\"segment.bytes\" = \"10 apples\"\n", "segment.bytes", 12),
            (good + "\n[limits]\nmemory = \"-5MiB\"\n", "limits.memory", 12),
            (good.replace("127.0.0.1:0", "127.0.0.1:99999"), "listener.clients.bind", 9),
        ]
        for text, key, line in cases:
            code, out, err = self.check(text)
            with self.subTest(key=key, line=line):
                self.assertEqual(code, 78, f"{text}\n{out}{err}")
                self.assertIn(f"broker.toml:{line}:", err, text)
                self.assertIn(key, err)

    def test_all_mistakes_at_once_with_a_suggestion(self):
        text = self.good().replace("id = 1", "idd = 1") + "\n[limitss]\nmemory = \"1GiB\"\n"
        code, _, err = self.check(text)
        self.assertEqual(code, 78)
        self.assertGreaterEqual(len(err.splitlines()), 2, err)
        self.assertIn("limits", err)

    def test_windows_line_ends_and_units_are_accepted_as_documented(self):
        text = (self.good() + '\n[topic.defaults]\n"retention.age" = "3d"\n"segment.bytes" = "64MiB"\n')
        code, _, err = self.check(text.replace("\n", "\r\n"))
        self.assertEqual(code, 0, err)

    def test_check_prints_every_value_with_its_origin(self):
        code, out, err = self.check(self.good(), "--set", "broker.id=7")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"broker\.id += 7 .*--set")
        self.assertRegex(out, r"listener\.clients\.bind += .*broker\.toml:9")
        self.assertIn("built-in", out)
        code, out, err = self.check(self.good(), environment={"MQ_BROKER__ID": "9"})
        self.assertRegex(out, r"broker\.id += 9 .*MQ_BROKER__ID")

    def test_unreadable_file_is_one_line(self):
        done = subprocess.run([program("mqbroker"), "--config", "/nonexistent/broker.toml", "--check"],
                              capture_output=True, timeout=20)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"/nonexistent/broker.toml", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
