#include "random_history.h"

namespace mq::testing {

using model::Offset;

RandomHistory::RandomHistory(std::uint64_t seed) : random_(seed * 7919 + 1), world_(seed) {
  world_.settings.segment_bytes = random_.between(64, 128) << 10;
  world_.settings.retention_age = std::chrono::milliseconds(0);
  world_.config.index_stride_bytes = random_.between(1, 64) << 10;
  world_.config.tail_cache_bytes = random_.chance(0.5) ? 1 : random_.between(1, 200) << 10;
  world_.config.low_mark_bytes = random_.chance(0.5) ? 0 : 1u << 30;
  world_.settings_of[1] = world_.settings;
  world_.settings_of[1].durability = model::Durability::memory;
  world_.settings_of[2] = world_.settings;
  world_.settings_of[2].retention_bytes = 1u << 20;
  if (random_.chance(0.5)) world_.settings_of[2].retention_age = std::chrono::seconds(40);
  auto& config = world_.config;
  config.write_behind_bytes = random_.between(1, 16) << 12;
  config.journal_file_bytes_min = config.journal_file_bytes_max = random_.between(4, 16) << 14;
  config.journal_files_max = static_cast<std::uint32_t>(random_.between(2, 4));
  if (random_.chance(0.5)) {
    config.journal_file_bytes_max = 1u << 20;
    config.journal_grow_bytes = random_.between(1, 8) << 14;
  }
  config.journal_bypass_bytes = random_.between(1, 8) << 12;
  world_.start(kPartitions);
}

std::optional<std::string> RandomHistory::run(int operations) {
  for (int i = 0; i < operations && !broken_; ++i) step();
  if (!broken_) restart(Death::clean);
  return broken_;
}

void RandomHistory::broken(std::string what) {
  if (broken_) return;
  broken_ = std::move(what);
  // What the log itself said lately helps to understand a failing seed.
  const std::size_t first = world_.lines.size() > 12 ? world_.lines.size() - 12 : 0;
  for (std::size_t i = first; i < world_.lines.size(); ++i) *broken_ += "\n  " + world_.lines[i];
}

void RandomHistory::step() {
  const int partition = static_cast<int>(random_.below(kPartitions - 1));
  const auto dice = random_.below(1000);
  if (dice < 600) {
    append(partition);
  } else if (dice < 770) {
    read(partition);
  } else if (dice < 795) {
    find_time(partition);
  } else if (dice < 800) {
    trim(partition);
  } else if (dice < 806) {
    cut(partition);
  } else if (dice < 970) {
    pass_time();
  } else if (dice < 982) {
    inject();
  } else {
    restart(dice < 986 ? Death::clean : dice < 993 ? Death::kill : Death::power);
  }
  if (!broken_) note_progress();
}

void RandomHistory::append(int partition) {
  auto& expected = expected_[partition];
  const int records = static_cast<int>(random_.between(1, 4));
  const auto bytes = random_.chance(0.1) ? random_.below(20'000) : random_.below(2'000);
  auto batch = random_.chance(0.5) ? next_of_a_producer(partition, records, bytes)
                                   : make_batch(++world_.batches, records, bytes);
  const auto before = world_.log(partition).log_end_offset();
  const auto info = world_.append_batch(batch, partition);
  if (!info) {
    if (world_.log(partition).log_end_offset() != before) broken("a failed append moved the end");
    return;
  }
  if (info->base_offset != expected.end)  // LOG-1
    return broken(fmt::format("offset {} given, {} is next", info->base_offset, expected.end));
  expected.end = info->end_offset;
  expected.batches.push_back(
      {info->base_offset, info->end_offset, std::vector(batch.bytes.begin(), batch.bytes.end())});
}

/// As its log remembers it, or anew.
base::SharedBytes RandomHistory::next_of_a_producer(int partition, int records, std::size_t bytes) {
  const auto id = static_cast<std::int64_t>(random_.below(kProducers));
  const auto* const known = world_.log(partition).find_producer(id);
  const std::int32_t epoch = known == nullptr ? 0 : known->producer().epoch;
  if (known == nullptr || random_.chance(0.02))
    return named_batch(id, known == nullptr ? 0 : epoch + 1, 0, records, bytes);
  return named_batch(id, epoch, known->next_sequence(), records, bytes);
}

/// IDM-4: what is remembered follows from the batches that are there.
void RandomHistory::check_producers(int partition) {
  storage::ProducerTable table;
  for (const auto& batch : expected_[partition].batches)
    table.note(*model::RecordBatchView::parse_first(batch.bytes));
  for (std::int64_t id = 0; id < kProducers; ++id) {
    if (remembered(world_.log(partition).find_producer(id)) != remembered(table.find(id)))
      return broken(fmt::format("partition {}: of producer {} is remembered what is not in the log",
                                partition, id));
  }
}

void RandomHistory::read(int partition) {
  auto& log = world_.log(partition);
  if (log.failure()) return;
  const auto start = log.log_start_offset();
  const auto span = static_cast<std::uint64_t>(log.log_end_offset().value() - start.value());
  const auto from = model::advance(start, static_cast<std::int64_t>(random_.below(span + 1)));
  const auto result = world_.read(from, random_.below(30'000), partition);
  if (result) return check_piece(partition, *result, from);
  const bool retained = result.error() == make_error_code(StorageErrc::offset_out_of_range) &&
                        from < log.log_start_offset();
  const bool failed = world_.disk->failed() || log.failure();
  if (!retained && !failed)
    broken(fmt::format("read at {} failed: {}", from, result.error().message()));
}

/// The first batch that is young enough, whatever became of the indexes (LOG-5).
void RandomHistory::find_time(int partition) {
  auto& log = world_.log(partition);
  const auto& batches = expected_[partition].batches;
  if (log.failure() || batches.empty()) return;
  const auto time_of = [](const Batch& batch) {
    return model::RecordBatchView::parse_first(batch.bytes)->append_time_ms();
  };
  const auto& some = batches[random_.below(batches.size())];
  const std::int64_t time_ms = time_of(some) + static_cast<std::int64_t>(random_.below(3)) - 1;
  const auto found = world_.find_time(time_ms, partition);
  const auto start = log.log_start_offset();
  if (world_.disk->failed() || log.failure()) return;
  if (!found) return broken(fmt::format("time {} not found: {}", time_ms, found.error().message()));
  const auto first = std::ranges::find_if(
      batches, [&](const Batch& batch) { return batch.end > start && time_of(batch) >= time_ms; });
  const auto want = first == batches.end() ? log.log_end_offset() : std::max(first->base, start);
  // Retention may have moved the start while the time was looked for.
  if (found->offset != want && found->offset >= start)
    broken(fmt::format("partition {}: time {} is found at {}, not at {}", partition, time_ms,
                       found->offset, want));
}

void RandomHistory::trim(int partition) {
  auto& log = world_.log(partition);
  if (log.failure()) return;
  const auto before = log.log_start_offset();
  const auto span = static_cast<std::uint64_t>(log.log_end_offset().value() - before.value());
  const auto to =
      random_.chance(0.2)
          ? log.confirmed_end()
          : model::advance(before, static_cast<std::int64_t>(random_.below(span / 2 + 1)));
  const bool allowed = to <= log.confirmed_end();
  auto trimming = log.trim(to);
  if (random_.chance(0.3)) {
    // A crash in the middle of it: nobody waits for the outcome.
    world_.runtime.spawn("trim", forget(std::move(trimming)));
    world_.pass(std::chrono::microseconds(random_.below(30'000)));
    return restart(random_.chance(0.5) ? Death::kill : Death::power);
  }
  const auto trimmed = testing::run(world_.simulator, std::move(trimming));
  if (world_.disk->failed() || log.failure()) return;
  // That end may have moved on while the trim waited for its turn.
  if (trimmed && to > log.confirmed_end()) broken("trimmed above the confirmed end");
  if (trimmed && log.log_start_offset() < to) broken("a trim left the log start where it was");
  if (!trimmed && allowed && !faulty_)
    broken(fmt::format("trim to {} failed: {}", to, trimmed.error().message()));
}

/// The log goes on below where it ended, with other batches.
void RandomHistory::cut(int partition) {
  auto& expected = expected_[partition];
  auto& log = world_.log(partition);
  if (log.failure() || expected.batches.empty()) return;
  const auto& batch = expected.batches[random_.below(expected.batches.size())];
  const auto to = random_.chance(0.3) ? expected.batches.back().base : batch.base;
  if (to < log.log_start_offset()) return;
  expected.durable = std::min(expected.durable, to);
  expected.cut_to = to;
  auto cutting = log.truncate(to, log.leader_epoch());
  if (random_.chance(0.3)) {
    world_.runtime.spawn("cut", forget(std::move(cutting)));
    world_.pass(std::chrono::microseconds(random_.below(60'000)));
    return restart(random_.chance(0.5) ? Death::kill : Death::power);
  }
  const auto done = testing::run(world_.simulator, std::move(cutting));
  if (world_.disk->failed() || log.failure()) return;
  if (!done && !faulty_) return broken("a cut failed: " + done.error().message());
  if (!done) return;
  if (log.log_end_offset() != to) return broken("a cut left the log end where it was");
  while (!expected.batches.empty() && expected.batches.back().base >= to)
    expected.batches.pop_back();
  expected.end = to;
  expected.cut_to.reset();
  note_progress();  // the log start may have moved while the cut was under way
  if (!broken_) check_producers(partition);
}

asio::awaitable<void> RandomHistory::forget(asio::awaitable<base::Result<void>> task) {
  static_cast<void>(co_await std::move(task));
}

/// LOG-2, LOG-7: bytes come out as they went in, one batch behind the other.
void RandomHistory::check_piece(int partition, const storage::ReadResult& result, Offset from) {
  const auto& batches = expected_[partition].batches;
  std::vector<std::byte> got;
  for (const auto& piece : result.batches)
    got.insert(got.end(), piece.bytes.begin(), piece.bytes.end());
  if (got.size() != result.bytes) broken("a read says another size than it gave");
  auto batch = std::ranges::upper_bound(batches, from, {}, &Batch::end);
  std::size_t at = 0;
  auto end = from;
  for (; at < got.size() && batch != batches.end(); ++batch) {
    if (got.size() - at < batch->bytes.size() ||
        !std::equal(batch->bytes.begin(), batch->bytes.end(),
                    got.begin() + static_cast<std::ptrdiff_t>(at)))
      return broken(fmt::format("partition {}: other bytes at offset {}", partition, batch->base));
    at += batch->bytes.size();
    end = batch->end;
  }
  if (at != got.size()) broken(fmt::format("partition {}: unknown batches read", partition));
  if (end != result.end_offset) broken("a read says another end than it gave");
  if (from < expected_[partition].end && result.bytes == 0)
    broken(fmt::format("partition {}: nothing at offset {}", partition, from));
}

void RandomHistory::inject() {
  faulty_ = true;
  switch (random_.below(6)) {
    case 0:
      world_.files->inject({.operation = FileOperation::sync,
                            .path_part = random_.chance(0.5) ? ".log" : ".journal",
                            .skip = static_cast<int>(random_.below(3))});
      break;
    case 1:
      world_.files->inject({.operation = FileOperation::write,
                            .path_part = ".log",
                            .short_write = static_cast<std::int64_t>(random_.below(300))});
      break;
    case 2:
      world_.files->set_capacity(world_.files->used_bytes() + random_.below(200'000));
      break;
    case 3:
      world_.files->inject({.operation = FileOperation::write,
                            .path_part = ".log",
                            .error = base::make_error_code(base::BaseErrc::no_space)});
      break;
    case 4:
      world_.files->set_capacity(std::uint64_t{1} << 40);
      break;
    default:
      world_.files->set_cold_share(static_cast<double>(random_.below(3)) / 2);
  }
}

void RandomHistory::pass_time() {
  const auto unit = random_.below(10);
  if (unit < 6) {
    world_.pass(std::chrono::microseconds(random_.below(20'000)));
  } else if (unit < 9) {
    world_.pass(std::chrono::milliseconds(random_.below(3'000)));
  } else {
    world_.pass(std::chrono::seconds(random_.below(70)));
    world_.pass(std::chrono::seconds(3));
    note_epochs();
  }
  if (random_.chance(0.05)) world_.runtime.jump_wall_clock(random_.chance(0.5) ? 1'000 : -1'000);
  if (random_.chance(0.005)) {
    const auto hours = static_cast<std::int64_t>(random_.below(60)) - 20;
    world_.runtime.jump_wall_clock(hours * 3'600'000);
  }
}

/// PAR-4: by now the journal has them, though nothing may have been appended.
void RandomHistory::note_epochs() {
  if (world_.disk->failed()) return;
  for (int i = 0; i < kPartitions; ++i) expected_[i].epoch = world_.log(i).leader_epoch();
}

void RandomHistory::note_progress() {
  for (int i = 0; i < kPartitions; ++i) {
    auto& expected = expected_[i];
    auto& log = world_.log(i);
    if (log.durable_offset() > expected.end) broken("more is durable than was appended");
    if (log.failure()) continue;
    if (log.durable_offset() < expected.durable) broken("the durable offset fell");
    expected.durable = log.durable_offset();
    if (log.log_start_offset() < expected.start) broken("the log start fell");  // LOG-10
    expected.start = log.log_start_offset();
    while (!expected.batches.empty() && expected.batches.front().end <= expected.start)
      expected.batches.pop_front();
  }
}

void RandomHistory::restart(Death death) {
  ++restarts_;
  const bool faulty = faulty_ || world_.disk->failed();
  if (death == Death::clean) {
    static_cast<void>(world_.stop());
  } else if (death == Death::kill) {
    world_.kill();
  } else {
    world_.crash();
  }
  world_.files->clear_faults();
  world_.files->set_capacity(std::uint64_t{1} << 40);
  faulty_ = false;
  const auto started = world_.try_start(kPartitions);
  if (!started) return broken("start failed: " + started.error().message());
  if (!started->journal_problem.empty())
    return broken("the journal is said to be damaged: " + started->journal_problem);
  for (int i = 0; i < kPartitions; ++i) check_after_start(i, death, faulty);
}

void RandomHistory::check_after_start(int partition, Death death, bool faulty) {
  auto& expected = expected_[partition];
  auto& log = world_.log(partition);
  if (log.failure())
    return broken(fmt::format("partition {} offline: {}", partition, log.failure().message()));
  const auto epoch = world_.found_epochs[partition];
  if (epoch < expected.epoch)
    return broken(
        fmt::format("partition {}: epoch {} came back after {}", partition, epoch, expected.epoch));
  expected.epoch = epoch;
  const auto end = log.log_end_offset();
  if (end < expected.durable)
    return broken(
        fmt::format("partition {}: ends at {}, {} was durable", partition, end, expected.durable));
  const bool was_cut = expected.cut_to == end;
  expected.cut_to.reset();
  if (death != Death::power && !faulty && end != expected.end && !was_cut)
    return broken(fmt::format("partition {}: ends at {}, {} was appended and the page cache lives",
                              partition, end, expected.end));
  if (log.log_start_offset() < expected.start)
    return broken(fmt::format("partition {}: starts at {}, had started at {}", partition,
                              log.log_start_offset(), expected.start));
  while (!expected.batches.empty() && expected.batches.back().base >= end)
    expected.batches.pop_back();
  if (!expected.batches.empty() && expected.batches.back().end != end)
    return broken("the log ends inside a batch");
  expected.end = end;
  expected.durable = end;  // REC-3: what is served now survives the next power cut
  note_progress();
  for (auto at = log.log_start_offset(); at < end && !broken_;) {
    const auto result = world_.read(at, 100'000, partition);
    if (!result) return broken(fmt::format("read at {} failed after a start", at));
    check_piece(partition, *result, at);
    if (result->end_offset <= at) return broken("a read does not move on");
    at = result->end_offset;
  }
  if (!broken_) check_producers(partition);
}

}  // namespace mq::testing
