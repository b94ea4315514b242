"""Addresses as people write them."""

import socket
import unittest

from daemon import Case, ctl, free_port


def has_ipv6():
    try:
        free_port("::1")
        return True
    except OSError:
        return False


class Addresses(Case):
    def test_forms_of_bootstrap(self):
        broker = self.broker().start()
        for form in (broker.address, f" {broker.address} ", f"localhost:{broker.port}", f"{broker.address},",
                     f"127.0.0.1:{free_port()},{broker.address}"):
            done = ctl("-b", form, "topic", "list")
            self.assertEqual(done.code, 0, f"{form!r}: {done.err}")
        for form, part in (("127.0.0.1:port", "port"), ("127.0.0.1:0", "0"), ("127.0.0.1:99999", "99999"),
                           ("[::1:9500", "[::1:9500"), ("a b:1", "a b")):
            done = ctl("-b", form, "topic", "list")
            self.assertEqual(done.code, 2, f"{form!r}: {done.err}")
            self.assertIn(part, done.err)

    @unittest.skipUnless(has_ipv6(), "no IPv6 on loopback")
    def test_ipv6(self):
        broker = self.broker(bind="::1").start()
        self.assertEqual(broker.ctl("topic", "create", "t").code, 0)
        self.assertEqual(broker.ctl("produce", "t", stdin=b"x\n").code, 0)
        self.assertEqual(broker.ctl("consume", "t", "-e").out, "x\n")
        status = broker.ctl("status", "-o", "json").out
        self.assertIn(f"[::1]:{broker.port}", status, "printed addresses can be pasted back")
        # A name with addresses of both families, of which one is refused.
        done = ctl("-b", f"localhost:{broker.port}", "topic", "list")
        names = {info[4][0] for info in socket.getaddrinfo("localhost", broker.port, type=socket.SOCK_STREAM)}
        if "::1" in names:
            self.assertEqual(done.code, 0, done.err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
