#!/usr/bin/env python3
"""Every check must find what it is there for: a checker that has never failed is not trusted. Each case is a small tree of files
and the words that must (or, for an empty list, must not) come out."""
import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from lint import CHECKS  # noqa: E402


def run(check, tree):
    with tempfile.TemporaryDirectory(prefix='mq-lint.') as folder:
        root = Path(folder)
        for name, text in tree.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = CHECKS[check](root)
        return code, out.getvalue()


class Case(unittest.TestCase):
    def refused(self, check, tree, *words):
        code, out = run(check, tree)
        self.assertEqual(code, 1, f'{check} let it pass:\n{tree}\n{out}')
        for word in words:
            self.assertIn(word, out)

    def accepted(self, check, tree):
        code, out = run(check, tree)
        self.assertEqual(code, 0, f'{check} refused good code:\n{out}')


class Includes(Case):
    def test_upwards_and_sideways(self):
        self.refused('includes', {'src/model/a.h': '#include "storage/segment.h"\n'}, 'model may not include storage', 'src/model/a.h:1')
        self.refused('includes', {'src/net/a.cc': '#include "config/config.h"\n'}, 'net may not include config')
        self.refused('includes', {'src/storage/a.cc': '\n#include "protocol/frame.h"\n'}, 'src/storage/a.cc:2')
        self.refused('includes', {'src/broker/a.cc': '#include "client/core.h"\n'}, 'broker may not include client')
        self.refused('includes', {'src/client/a.cc': '#include "metadata/store.h"\n'}, 'client may not include metadata')
        self.refused('includes', {'include/mq/a.h': '#include "base/check.h"\n'}, 'mq may not include base')

    def test_downwards_is_transitive(self):
        self.accepted('includes', {'src/broker/a.cc': '#include "base/check.h"\n#include "model/offset.h"\n#include "mq/result.h"\n',
                                   'src/client/a.cc': '#include "net/connection.h"\n#include "base/check.h"\n'})

    def test_offline_tools_only(self):
        self.refused('includes', {'tools/mqctl/topic.cc': '#include "storage/segment.h"\n'}, 'mqctl may not include storage')
        self.accepted('includes', {'tools/mqctl/log_dump.cc': '#include "storage/segment.h"\n'})

    def test_third_party_has_one_home(self):
        self.refused('includes', {'src/storage/a.cc': '#include <zstd.h>\n'}, 'home in model')
        self.refused('includes', {'src/net/a.cc': '#include <boost/asio/ip/tcp.hpp>\n'}, 'home in base')
        self.refused('includes', {'src/model/a.h': '#include <lz4.h>\n'}, 'belongs in a .cc')
        self.refused('includes', {'src/broker/a.cc': '#include "protocol/proto/api.pb.h"\n'}, 'home in metadata, protocol')
        self.refused('includes', {'include/mq/a.h': '#include <boost/version.hpp>\n'}, 'standard library only')
        self.refused('includes', {'src/broker/a.cc': '#include <CLI/CLI.hpp>\n'}, 'home in tools/mqctl')
        self.refused('includes', {'src/broker/a.cc': '#include <systemd/sd-daemon.h>\n', 'src/broker/b.cc': '#include <systemd/sd-bus.h>\n'}, 'one file only')
        self.refused('includes', {'src/protocol/a.h': '#include "protocol/codec.h"\n'}, '.cc files only')
        self.accepted('includes', {'src/net/a.h': '#include <boost/asio/awaitable.hpp>\n', 'src/model/lz4.cc': '#include <lz4.h>\n',
                                   'src/broker/main.cc': '#include <CLI/CLI.hpp>\n'})

    def test_folder_must_be_written(self):
        self.refused('includes', {'src/net/a.cc': '#include "a.h"\n'}, 'write the folder too')
        self.refused('includes', {'src/fancy/a.cc': '#include "base/a.h"\n'}, 'folder fancy')

    def test_comments_do_not_count(self):
        self.accepted('includes', {'src/model/a.h': '// #include "storage/segment.h"\n/*\n#include "broker/x.h"\n*/\n'})


class Seams(Case):
    def test_each_kind(self):
        for kind, code in {
                'clock': 'auto t = std::chrono::steady_clock::now();',
                'file': 'int fd = ::open(path, flags);',
                'socket': '::connect(fd, a, n);',
                'timer': 'asio::steady_timer t(ex);',
                'thread': 'std::thread t(f);',
                'random': 'std::random_device d;',
        }.items():
            with self.subTest(kind):
                self.refused('seams', {'src/storage/a.cc': f'void f() {{\n  {code}\n}}\n'}, f'a.cc:2: {kind}')
                self.accepted('seams', {'src/base/real/a.cc': f'void f() {{\n  {code}\n}}\n'})

    def test_more_ways_to_the_same_thing(self):
        for code in ['clock_gettime(CLOCK_MONOTONIC, &t);', 'std::ifstream in(p);', 'std::filesystem::remove(p);', 'fopen(p, m);',
                     'boost::asio::ip::tcp::socket s(ex);', 'std::this_thread::sleep_for(d);', 'getrandom(b, n, 0);', 'auto t = ::time(nullptr);',
                     'int f = openat(d, p, O_RDWR);', '::fdatasync(fd);', 'boost::asio::io_context c;']:
            with self.subTest(code):
                self.refused('seams', {'src/net/a.cc': code + '\n'})

    def test_shell_of_the_client_owns_threads_but_no_sockets(self):
        self.accepted('seams', {'src/client/shell.cc': 'std::thread t(f);\n'})
        self.refused('seams', {'src/client/core.cc': 'std::thread t(f);\n'})
        self.refused('seams', {'src/client/shell.cc': '::connect(fd, a, n);\n'})

    def test_seam_calls_and_words_are_fine(self):
        self.accepted('seams', {'src/net/a.cc': '// std::thread, ::open(\nauto c = network.connect(to);\nfiles->open(path);\nlog("::open(");\n'
                                                'std::filesystem::path p;\nint steady_clock_error = 0;\nsegment::open(p);\nauto id = std::thread::id();\n'})


class Coroutines(Case):
    def bad(self, code, word):
        self.refused('coroutines', {'src/net/a.cc': 'asio::awaitable<void> f() {\n' + code + '\n}\n'}, word, 'src/net/a.cc:')

    def good(self, code, head='asio::awaitable<void> f() {\n'):
        self.accepted('coroutines', {'src/net/a.cc': head + code + '\n}\n',
                                     'src/model/ids.h': 'using Offset = StrongInt<struct OffsetTag, std::int64_t>;\nenum class Acks { none };\n'})

    def test_temporary_lambda(self):
        self.bad('co_await asio::co_spawn(ex, [x] { return x; }, asio::use_awaitable);', 'lambda')
        self.bad('auto r = co_await run([this, y = 1](int a) { use(a); });', 'lambda')

    def test_temporary_aggregate(self):
        self.bad('co_await send(ec, Message{a, 1}, token);', 'Message{')
        self.bad('co_await send({.a = x});', 'braced argument')
        self.bad('auto r = wrap(Config{1}, co_await f());', 'Config{')
        self.bad('MQ_CO_TRY(auto r, co_await send(Message{a}));', 'Message{')
        self.bad('if (auto r = co_await send({a, b}); r) {\n}', 'braced argument')
        self.bad('co_return co_await send(std::vector<int>{1, 2});', 'vector')

    def test_braced_initialiser(self):
        self.bad('Reply reply{co_await send(x)};', 'inside braces')
        self.bad('co_return Reply{co_await send(x)};', 'inside braces')

    def test_condition_without_a_local(self):
        self.bad('while (co_await pause(k)) co_await step();', 'without a local variable')
        self.bad('if (!co_await pause(k)) {\n  step(1);\n}\nco_return;', 'without a local variable')
        self.bad('for (;;) {\n  if (!co_await pause(k)) co_return;\n  co_await run([](int a) {\n    int b = a;\n    return b;\n  });\n}', 'without a local variable')
        self.bad('switch (co_await next()) {\n  case 1:\n    break;\n}', 'without a local variable')
        self.good('int left = 3;\nwhile (co_await pause(left)) co_await step();')
        self.good('for (;;) {\n  const bool go = co_await pause(k);\n  if (!go) co_return;\n}')
        self.good('while (co_await pause(k)) {\n  for (const auto& log : logs()) log->sync();\n}')
        self.good('if (auto r = co_await send(x); !r) co_return;')
        self.good('MQ_CO_TRY(auto a, co_await send(x));\nif (co_await pause(a)) co_return;')
        self.good('auto [a, b] = pair();\nif (co_await pause(a)) co_return;')

    def test_called_at_once(self):
        self.bad('auto t = [x]() -> asio::awaitable<void> { co_await x->go(); }();', 'called at once')

    def test_good_forms(self):
        self.good('', head='auto operator co_await() && {\n  struct A {\n    int x;\n  };\n  return A{1};\n')
        self.good('Message message{a, 1};\nauto reply = co_await send(std::move(message));')
        self.good('if (auto r = co_await send(x); !r) {\n  Agg a{1};\n  use(a);\n}')
        self.good('while (co_await pause(step)) {\n  for (auto& l : logs()) l->post([l] { l->sync(); });\n}')
        self.bad('while (co_await pause([x] { return x; })) {\n}', 'lambda')
        self.good('int a = 1;\nwhile (!co_await done()) {\n  step({a});\n}')
        self.good('co_await runtime.sleep_for(std::chrono::milliseconds{5});\nco_await log.read(Offset{0}, 5);')
        self.good('co_await run([](int a) { return a; });')
        self.good('if (x) {\n  y();\n}\nco_await z();\nAgg b{1};')
        self.good('auto go = [this]() -> asio::awaitable<void> {\n  co_await step();\n};\nasio::co_spawn(ex, std::move(go), log_failure("x"));')
        self.good('table[i] = co_await f(values[i]);')
        self.good('co_await step();', head='auto f() -> asio::awaitable<Result<std::vector<int>>> {\n')
        self.good('co_return co_await step();', head='asio::awaitable<int> f() const override {\n')
        self.good('for (auto& p : all) {\n  co_await p->stop();\n}')
        self.good('switch (k) {\n  case 1:\n    co_await a();\n    break;\n  default: {\n    co_await b();\n  }\n}')


class Invariants(Case):
    good = {'src/INVARIANTS.md': '**LOG-1** offsets\n\n**LOG-2** crc\n', 'src/storage/a.cc': '// LOG-1, LOG-2\n', 'tests/unit/a.cc': '// LOG-2 LOG-1\n'}

    def test_good(self):
        self.accepted('invariants', self.good)

    def test_unknown_uncited_twice(self):
        self.refused('invariants', {**self.good, 'src/storage/b.cc': '// LOG-9\n'}, 'LOG-9 is not in')
        self.refused('invariants', {**self.good, 'tests/unit/a.cc': '// LOG-1\n'}, 'LOG-2 is cited by no test')
        self.refused('invariants', {**self.good, 'src/storage/a.cc': '// LOG-1\n', 'src/README.md': 'LOG-2\n'}, 'LOG-2 is cited by no code')
        self.refused('invariants', {**self.good, 'src/INVARIANTS.md': '**LOG-1** a\n**LOG-1** b\n'}, 'listed twice')
        self.refused('invariants', {'src/INVARIANTS.md': 'nothing\n'}, 'lists no rule')


class Mutants(Case):
    good = {'src/a/a.cc': 'if (MQ_MUTANT("one")) x();\n', 'tests/unit/a.cc': 'const base::EnabledMutant enabled("one");\n'}

    def test_switches_and_tests_name_each_other(self):
        self.accepted('mutants', self.good)
        self.accepted('mutants', {**self.good, 'src/a/b.cc': 'MQ_MUTANT("two")\n', 'tests/sim/m.cc': 'Mistake{"two", f, 3}\n'})
        self.refused('mutants', {**self.good, 'src/a/b.cc': '\nMQ_MUTANT("two")\n'}, 'src/a/b.cc:2: no test switches two on')
        self.refused('mutants', {**self.good, 'tests/sim/m.cc': 'noticed("gone", 3)\n'}, 'there is no switch gone')


class Errors(Case):
    def test_numbers_and_names(self):
        self.accepted('errors', {'include/mq/errors.def': 'MQ_ERROR(1, timed_out, "a")\nMQ_ERROR(2, closed, "b (c)")\n'})
        self.refused('errors', {'include/mq/errors.def': 'MQ_ERROR(1, timed_out, "a")\nMQ_ERROR(1, closed, "b")\n'}, 'number 1 is taken by timed_out')
        self.refused('errors', {'include/mq/errors.def': 'MQ_ERROR(1, closed, "a")\nMQ_ERROR(2, closed, "b")\n'}, 'listed twice')
        self.refused('errors', {'include/mq/errors.def': '// nothing\n'}, 'no entry')


class Docs(Case):
    def test_links_and_named_files(self):
        self.accepted('docs', {'README.md': 'see [it](src/README.md#a) and [out](https://example.org)', 'src/README.md': 'net/a.cc', 'src/net/a.cc': ''})
        self.refused('docs', {'README.md': '\n[it](gone.md)'}, 'README.md:2: link to gone.md')
        shown = '<!-- a.cc -->\n```cpp\nint a;\n```\n'
        self.accepted('docs', {'README.md': shown, 'a.cc': 'int a;\n'})
        self.refused('docs', {'README.md': shown, 'a.cc': 'int b;\n'}, 'does not show a.cc')
        self.refused('docs', {'src/README.md': 'net/gone.cc'}, 'names net/gone.cc')


class Form(Case):
    def test_format(self):
        style = 'BasedOnStyle: Google\n'
        self.accepted('format', {'.clang-format': style, 'src/a/a.cc': 'int a = 1;\n'})
        self.refused('format', {'.clang-format': style, 'src/a/a.cc': 'int   a=1;\n'}, 'src/a/a.cc')

    def test_shell(self):
        self.accepted('shell', {'tools/a.sh': '#!/bin/bash\necho "$1"\n'})
        self.refused('shell', {'tools/a.sh': '#!/bin/bash\necho $1\n'}, 'SC2086')


if __name__ == '__main__':
    unittest.main(verbosity=1)
