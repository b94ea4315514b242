# mq_fuzz(NAME SOURCES file.cc ... LINK ... [CORPUS folder] [SECONDS n]): one libFuzzer entry point, LLVMFuzzerTestOneInput.
#
# With MQ_FUZZ (the asan preset) it becomes a real fuzzer, tested over its corpus and then fuzzed for SECONDS (default 5;
# MQ_FUZZ_SECONDS in the environment of ctest overrides it). Elsewhere the same file is linked with a main that only replays the
# corpus, so that a found input stays a test in every build. CORPUS is relative to the calling folder, default corpus/NAME.
function(mq_fuzz name)
  cmake_parse_arguments(arg "" "CORPUS;SECONDS" "SOURCES;LINK" ${ARGN})
  if(NOT arg_CORPUS)
    set(arg_CORPUS corpus/${name})
  endif()
  if(NOT arg_SECONDS)
    set(arg_SECONDS 5)
  endif()
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/${arg_CORPUS})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${arg_LINK})
  if(MQ_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
  endif()
  add_test(NAME ${name}.corpus COMMAND ${name} -runs=0 ${corpus})
  set_tests_properties(${name}.corpus PROPERTIES LABELS fuzz TIMEOUT 120)
  if(MQ_FUZZ)
    add_test(NAME ${name}.fuzz
      COMMAND ${PROJECT_SOURCE_DIR}/tests/fuzz/run_fuzzer $<TARGET_FILE:${name}> ${corpus} ${arg_SECONDS})
    set_tests_properties(${name}.fuzz PROPERTIES LABELS fuzz TIMEOUT 3600)
  endif()
endfunction()
