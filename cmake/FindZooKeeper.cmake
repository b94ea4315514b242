# The Apache ZooKeeper C client with threads (libzookeeper-mt-dev), which comes with neither a CMake package nor a .pc file.
# Gives ZooKeeper::ZooKeeper. THREADED, which its header asks for, is not needed: the synchronous calls are not used.
find_path(ZooKeeper_INCLUDE_DIR zookeeper/zookeeper.h)
find_library(ZooKeeper_LIBRARY zookeeper_mt)
if(ZooKeeper_INCLUDE_DIR AND EXISTS ${ZooKeeper_INCLUDE_DIR}/zookeeper/zookeeper_version.h)
  file(STRINGS ${ZooKeeper_INCLUDE_DIR}/zookeeper/zookeeper_version.h version_line REGEX "ZOO_VERSION +\"")
  string(REGEX REPLACE ".*\"([0-9.]+)\".*" "\\1" ZooKeeper_VERSION "${version_line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ZooKeeper
  REQUIRED_VARS ZooKeeper_LIBRARY ZooKeeper_INCLUDE_DIR VERSION_VAR ZooKeeper_VERSION)
mark_as_advanced(ZooKeeper_INCLUDE_DIR ZooKeeper_LIBRARY)
if(ZooKeeper_FOUND AND NOT TARGET ZooKeeper::ZooKeeper)
  add_library(ZooKeeper::ZooKeeper UNKNOWN IMPORTED)
  set_target_properties(ZooKeeper::ZooKeeper PROPERTIES
    IMPORTED_LOCATION ${ZooKeeper_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${ZooKeeper_INCLUDE_DIR})
endif()
