# SPDX-License-Identifier: Apache-2.0
# find_package(hostcuda) gives tw::hostcuda (libcudart.so.12 with its headers) and tw::hostcuda_static.
include(${CMAKE_CURRENT_LIST_DIR}/hostcudaTargets.cmake)
