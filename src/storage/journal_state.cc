#include "storage/journal_state.h"

#include <algorithm>

namespace mq::storage {

using model::Offset;

void apply_cut(JournalLogState& state, const JournalCut& cut) {
  const Offset to = cut.end.offset;
  if (state.recovery_point.offset > to) state.recovery_point = cut.end;
  state.end = std::min(state.end, to);
  state.durable = std::min(state.durable, to);
  state.epoch_start.start_offset = std::min(state.epoch_start.start_offset, to);
  state.cut = cut.end;
}

void apply_recovery_point(JournalLogState& state, const SyncPoint& point) {
  state.recovery_point = point;
  state.end = std::max(state.end, point.offset);
  state.durable = std::max(state.durable, point.offset);
  state.cut.reset();
}

void apply_epoch_start(JournalLogState& state, const EpochStart& start) {
  if (start.leader_epoch > state.epoch_start.leader_epoch) state.epoch_start = start;
}

void apply_append(JournalLogState& state, Offset durable, Offset end) {
  state.durable = std::max(state.durable, durable);
  state.end = std::max(state.end, end);
}

void apply_restart(JournalLogState& state, const JournalRestart& restart) {
  const SyncPoint& start = restart.start;
  state.recovery_point = start;
  state.end = state.durable = state.log_start = state.epoch_start.start_offset = start.offset;
  state.cut = start;
  state.intact_since = std::max(state.intact_since, restart.intact_since);
}

bool begins_anew(const JournalLogState& state) {
  return state.cut && state.cut->offset == state.log_start &&
         state.cut->segment_base == state.log_start;
}

JournalLogState created_log(const JournalCreate& create) {
  JournalLogState state;
  state.durability = create.durability;
  state.intact_since = create.intact_since;
  state.recovery_point.offset = state.recovery_point.segment_base = Offset(0);
  state.end = state.durable = Offset(0);
  return state;
}

}  // namespace mq::storage
