# SPDX-License-Identifier: Apache-2.0
# Compiler settings shared by every target. Architecture flags stay out of here: only ISA files carry them (src/CMakeLists.txt).
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
# Files are found by where they lie, in the build as installed. CMake pads a run path that it means to change with empty entries,
# and for those the loader looks into the current folder: what is built is not changed any more.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib:$ORIGIN/../lib/hostcuda") # of programs in bin/
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# What decides, writes text or tests is compiled with -O1; what an enqueue passes through and what computes ask for more
# themselves (src/CMakeLists.txt).
string(REPLACE "-O3" "-O1" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

option(TW_BUILD_TESTS "Build the tests" ON)
option(TW_BUILD_FUZZERS "Build the libFuzzer targets (clang)" OFF)
set(TW_SANITIZE "" CACHE STRING "Value of -fsanitize= for every target")
set(TW_MODELS_DIR "${CMAKE_SOURCE_DIR}/../shared/models" CACHE PATH "Folder of trained models with recorded outputs")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# The standard headers, and those in ARGN, read once for all sources of a target of many. Not beside ccache: a precompiled
# header holds the paths of its tree, so that no other tree would find what is cached. tw_precompile_as(): the headers that
# another target of the same flags has precompiled.
function(tw_precompile target)
    if(NOT CCACHE_PROGRAM)
        target_precompile_headers(${target} PRIVATE <algorithm> <atomic> <chrono> <cmath> <cstdint> <cstring> <fstream>
            <functional> <limits> <map> <memory> <mutex> <optional> <random> <set> <span> <sstream> <string> <thread>
            <unordered_map> <variant> <vector> ${ARGN})
    endif()
endfunction()
function(tw_precompile_as target other)
    if(NOT CCACHE_PROGRAM)
        target_precompile_headers(${target} REUSE_FROM ${other})
    endif()
endfunction()

# For programs too, where CMake would take -fPIE: they share precompiled headers with libraries.
add_compile_options(-fPIC)
# clang does not know all of g++'s names.
add_compile_options($<$<CXX_COMPILER_ID:Clang>:-Wno-unknown-warning-option>)
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -Wno-restrict -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow -fno-math-errno -ffp-contract=off)
# What nobody calls stays out of programs and libraries.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(LINKER:--gc-sections)
if(TW_SANITIZE)
    add_compile_options(-fsanitize=${TW_SANITIZE} -fno-omit-frame-pointer -g1)
    add_link_options(-fsanitize=${TW_SANITIZE})
endif()
if(TW_BUILD_FUZZERS)
    # Everything counts edges, and a finding ends the run. The checks left out compare types across libraries that hide them.
    add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize-recover=all -fno-sanitize=vptr,function)
    add_link_options(-fno-sanitize=vptr,function)
endif()
