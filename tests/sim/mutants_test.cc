// A checker that never failed is not trusted: each known mistake, switched on, must be found within
// so many seeds.

#include "base/mutants.h"

#include <gtest/gtest.h>

#include "sim/broker_world.h"
#include "sim/cluster_world.h"
#include "sim/storage_world.h"

namespace mq::sim {
namespace {

struct Mistake {
  const char* name;
  Report (*world)(std::uint64_t seed);
  std::uint64_t seeds_max;
  std::uint64_t first = 1;  ///< near one that finds it, where few do
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class Mutants : public ::testing::TestWithParam<Mistake> {};

TEST_P(Mutants, AreFound) {
  const auto& mistake = GetParam();
  const base::EnabledMutant enabled(mistake.name);
  for (std::uint64_t i = 0; i < mistake.seeds_max; ++i) {
    const auto seed = mistake.first + i;
    const auto report = mistake.world(seed);
    if (report.ok()) continue;
    std::cout << mistake.name << ": seed " << seed << ": " << report.violation << "\n";
    return;
  }
  FAIL() << mistake.name << " was not found within " << mistake.seeds_max << " seeds";
}

INSTANTIATE_TEST_SUITE_P(
    Storage, Mutants,
    ::testing::Values(Mistake{"serve_unsynced_tail", run_storage_world, 100},
                      Mistake{"retry_fsync_after_eio", run_storage_world, 100},
                      Mistake{"append_time_follows_the_clock", run_storage_world, 30},
                      Mistake{"bad_crc_cuts_the_log", run_storage_world, 100},
                      Mistake{"old_journal_generation", run_storage_world, 100},
                      Mistake{"journal_file_without_snapshot", run_storage_world, 100},
                      Mistake{"journal_replay_without_cuts", run_storage_world, 100},
                      Mistake{"cut_holds_syncs_back_early", run_storage_world, 200},
                      Mistake{"journal_replay_without_restarts", run_storage_world, 600, 401},
                      Mistake{"block_image_left_out", run_storage_world, 200},
                      Mistake{"block_image_after_its_append", run_storage_world, 800, 201}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Broker, Mutants,
    ::testing::Values(Mistake{"ack_before_confirmed", run_broker_world, 60},
                      Mistake{"high_watermark_at_log_end", run_broker_world, 60},
                      Mistake{"reads_pass_the_high_watermark", run_broker_world, 60},
                      Mistake{"order_rule_off", run_broker_world, 150, 51}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Idempotence, Mutants,
    ::testing::Values(Mistake{"duplicate_answered_out_of_order", run_broker_world, 60},
                      Mistake{"dedup_forgotten_at_start", run_broker_world, 60}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Cluster, Mutants,
    ::testing::Values(Mistake{"no_reread_on_connect", run_cluster_world, 80, 39},
                      Mistake{"controller_writes_unfenced", run_cluster_world, 10},
                      Mistake{"image_before_confirmed", run_cluster_world, 10}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Replication, Mutants,
    ::testing::Values(Mistake{"min_isr_ignored", run_replicated_world, 20},
                      Mistake{"truncate_to_high_watermark", run_replicated_world, 20},
                      Mistake{"isr_goes_by_log_end", run_replicated_world, 20},
                      Mistake{"send_cursor_confirms", run_replicated_world, 20},
                      Mistake{"isr_shrink_counts_early", run_replicated_world, 60},
                      Mistake{"isr_union_dropped_early", run_replicated_world, 60, 1000},
                      Mistake{"isr_grows_before_epoch_start", run_replicated_world, 200},
                      Mistake{"older_epoch_fetches_count", run_replicated_world, 150, 2018}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Failover, Mutants,
    ::testing::Values(Mistake{"image_without_elr", run_replicated_world, 20},
                      Mistake{"follower_reads_pass_the_high_watermark", run_replicated_world, 20},
                      Mistake{"the_dead_are_waited_for", run_replicated_world, 60, 7},
                      Mistake{"mistaken_again", run_replicated_world, 60, 23},
                      Mistake{"unheard_office_kept", run_replicated_world, 60, 51}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Damage, Mutants,
    ::testing::Values(Mistake{"damage_not_noted", run_replicated_world, 60, 12},
                      Mistake{"replaced_in_the_same_epoch", run_replicated_world, 60}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    UncleanElection, Mutants,
    ::testing::Values(Mistake{"unclean_everywhere", run_replicated_world, 60, 48},
                      Mistake{"lost_end_not_noted", run_replicated_world, 60, 4},
                      Mistake{"loss_told_from_the_end", run_replicated_world, 60, 4},
                      Mistake{"loss_told_from_the_start", run_replicated_world, 60, 4},
                      Mistake{"loss_told_too_far", run_replicated_world, 60, 4},
                      Mistake{"new_records_told_as_lost", run_replicated_world, 60, 29}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mq::sim
