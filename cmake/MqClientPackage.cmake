# The client library as applications get it: one shared object that shows the public API alone, its headers, and the package for
# find_package(mq). Inside this tree programs link the static mq::client.
include(CMakePackageConfigHelpers)

add_library(mqclient SHARED ${PROJECT_SOURCE_DIR}/cmake/empty.cc)
target_link_libraries(mqclient PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,mq_client>")
target_link_options(mqclient PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/mqclient.map)
if(NOT MQ_SANITIZE)
  # A sanitizer's runtime comes with the program, not with the library.
  target_link_options(mqclient PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(mqclient PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME client
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/mqclient.map)
target_compile_features(mqclient INTERFACE cxx_std_20)
target_include_directories(mqclient INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/mq)
install(TARGETS mqclient EXPORT mqTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/mq DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(EXPORT mqTargets NAMESPACE mq:: DESTINATION ${package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/mqConfig.cmake.in ${PROJECT_BINARY_DIR}/mqConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mqConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mqConfig.cmake ${PROJECT_BINARY_DIR}/mqConfigVersion.cmake DESTINATION ${package})

# The same for builds without CMake: pkg-config --cflags --libs mq-client. Its paths are relative, so that the tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE pc_up)
configure_file(${PROJECT_SOURCE_DIR}/cmake/mq-client.pc.in ${PROJECT_BINARY_DIR}/mq-client.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/mq-client.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
