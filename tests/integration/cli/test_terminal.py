"""What happens at a terminal: the question before a deletion, notices while nothing comes, Ctrl-C."""

import os
import pty
import select
import signal
import subprocess
import time
import unittest

from session import Broker, program


class Terminal:
    """mqctl with a pseudo-terminal as its stdin and stderr."""

    def __init__(self, *words):
        self.leader, follower = pty.openpty()
        self.process = subprocess.Popen([program("mqctl"), *words], stdin=follower, stderr=follower,
                                        stdout=subprocess.PIPE, env={"TERM": "dumb", "PATH": "/usr/bin:/bin"})
        os.close(follower)
        self.seen = ""

    def expect(self, text, seconds=10):
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            left = deadline - time.monotonic()
            if left < 0:
                raise AssertionError(f"{text!r} did not come, only {self.seen!r}")
            if select.select([self.leader], [], [], left)[0]:
                try:
                    self.seen += os.read(self.leader, 4096).decode()
                except OSError:  # the other end is closed
                    raise AssertionError(f"{text!r} did not come, only {self.seen!r}") from None
        return self.seen

    def type(self, line):
        os.write(self.leader, line.encode() + b"\n")

    def end(self, seconds=10):
        out = self.process.communicate(timeout=seconds)[0]
        return self.process.returncode, out.decode()


class AtATerminal(unittest.TestCase):
    def setUp(self):
        self.broker = Broker()
        self.addCleanup(self.broker.end)
        self.broker.start()
        self.broker.create("orders")
        self.broker.ctl("produce", "orders", stdin=b"a\nb\n")

    def delete(self, answer):
        terminal = Terminal("-b", self.broker.address, "topic", "delete", "orders")
        terminal.expect("Type orders to go on: ")
        self.assertIn("This deletes orders: 1 partition, ", terminal.seen)
        self.assertIn("2 records. It cannot be brought back.", terminal.seen)
        terminal.type(answer)
        return terminal.end()

    def test_the_name_typed_deletes(self):
        code, out = self.delete("orders")
        self.assertEqual(code, 0)
        self.assertTrue(out.startswith("deleted orders: 1 partition, "), out)

    def test_anything_else_deletes_nothing(self):
        self.assertEqual(self.delete("yes")[0], 8)
        self.assertEqual(self.broker.ctl("topic", "describe", "orders").code, 0)

    def test_waiting_for_records_is_said_once_after_three_seconds(self):
        self.broker.create("empty")
        process = subprocess.Popen([program("mqctl"), "-b", self.broker.address, "consume", "empty"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
        self.assertEqual(out, b"")
        self.assertEqual(err, b"empty is empty; waiting (Ctrl-C to stop)\n")
        self.assertEqual(process.returncode, 130)

    def test_ctrl_c_while_typing_records_sends_what_is_there(self):
        process = subprocess.Popen([program("mqctl"), "-b", self.broker.address, "produce", "orders"],
                                   stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(b"typed\n")
        process.stdin.flush()
        deadline = time.monotonic() + 10
        while self.broker.ctl("consume", "orders", "-e").out != "a\nb\ntyped\n":
            self.assertLess(time.monotonic(), deadline, "a line goes out when it is typed")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"sent 1 record, ", err)


class ClosedStreams(unittest.TestCase):
    """A caller that has closed standard streams: what is written must not reach a file or a socket that got their number."""

    def setUp(self):
        self.broker = Broker()
        self.addCleanup(self.broker.end)
        self.broker.start()
        self.broker.create("orders")

    def run_without(self, closed, *words):
        command = " ".join(f"{fd}>&-" for fd in closed)
        return subprocess.run(["sh", "-c", f'exec "$@" {command}', "sh", program("mqctl"), "-b", self.broker.address, *words],
                              capture_output=True, timeout=30, stdin=subprocess.DEVNULL)

    def test_closed_output_is_an_error(self):
        done = self.run_without([1], "topic", "list")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"[OUTPUT_FAILED]", done.stderr)
        self.assertIn(b"Bad file descriptor", done.stderr)

    def test_closed_errors_and_input_change_nothing(self):
        done = self.run_without([0, 2], "topic", "list", "-o", "jsonl")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"orders", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
