# mq_library(NAME [SOURCES ...] [PUBLIC ...] [PRIVATE ...]): one static library per folder of src/, as mq_NAME and mq::NAME.
# All share the precompiled header of mq_base.
function(mq_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(mq_${name} STATIC ${arg_SOURCES})
  add_library(mq::${name} ALIAS mq_${name})
  target_include_directories(mq_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(mq_${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  if(NOT name STREQUAL "base")
    target_precompile_headers(mq_${name} REUSE_FROM mq_base)
  endif()
endfunction()

# mq_protobuf(TARGET file.proto ...): generates lite code into the build tree and adds it to TARGET. The include name is
# "protocol/proto/file.pb.h", which only .cc files use.
function(mq_protobuf target)
  foreach(proto ${ARGN})
    get_filename_component(stem ${proto} NAME_WE)
    file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR}/${proto})
    get_filename_component(folder ${relative} DIRECTORY)
    set(out ${PROJECT_BINARY_DIR}/generated/${folder}/${stem}.pb)
    add_custom_command(
      OUTPUT ${out}.cc ${out}.h
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/generated
      COMMAND protobuf::protoc --cpp_out=lite:${PROJECT_BINARY_DIR}/generated
              -I ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/${relative}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${proto} VERBATIM)
    list(APPEND headers ${out}.h)
    target_sources(${target} PRIVATE ${out}.cc ${out}.h)
    set_source_files_properties(${out}.cc PROPERTIES
      SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-Wno-error;-w")
  endforeach()
  # For tools that read the sources without building them (clang-tidy).
  if(NOT TARGET mq_generated)
    add_custom_target(mq_generated)
  endif()
  add_custom_target(${target}_generated DEPENDS ${headers})
  add_dependencies(mq_generated ${target}_generated)
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(${target} PRIVATE protobuf::libprotobuf-lite)
endfunction()

# mq_test(NAME SOURCES ... LINK ... [LABELS ...] [TIMEOUT seconds]): one GoogleTest program per folder. A folder whose tests share
# a precompiled header of their own names its target in MQ_TEST_HEADERS.
function(mq_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(MQ_SANITIZE STREQUAL "thread")
    math(EXPR arg_TIMEOUT "4 * ${arg_TIMEOUT}")
  endif()
  add_executable(${name} ${arg_SOURCES})
  if(MQ_TEST_HEADERS)
    target_precompile_headers(${name} REUSE_FROM ${MQ_TEST_HEADERS})
  else()
    target_precompile_headers(${name} REUSE_FROM mq_base)
  endif()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gmock GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()
