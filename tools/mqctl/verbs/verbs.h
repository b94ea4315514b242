#pragma once

#include "mqctl/cli/registry.h"

namespace mq::mqctl {

/// One entry of the command registry each, in the file that runs it.
Command status_command();
Command health_command();
Command broker_list_command();
Command broker_describe_command();
Command broker_disks_command();
Command broker_can_stop_command();
Command partition_list_command();
Command partition_describe_command();
Command partition_elect_leader_command();
Command partition_acknowledge_loss_command();
Command topic_list_command();
Command topic_describe_command();
Command topic_create_command();
Command topic_alter_command();
Command topic_add_partitions_command();
Command topic_delete_command();
Command topic_trim_command();
Command produce_command();
Command consume_command();
Command log_dump_command();
Command log_verify_command();
Command log_segments_command();
Command log_find_command();
Command log_index_rebuild_command();
Command log_truncate_command();
Command bench_produce_command();
Command bench_consume_command();
Command bench_e2e_command();
Command config_show_command();
Command config_validate_command();
Command error_list_command();
Command error_explain_command();
Command local_up_command();
Command local_down_command();
Command completion_command();
Command complete_command();
Command version_command();

}  // namespace mq::mqctl
