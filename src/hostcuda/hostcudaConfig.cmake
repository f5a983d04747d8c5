# SPDX-License-Identifier: Apache-2.0
# find_package(hostcuda) gives tw::hostcuda (libcudart.so.12 with its headers) and tw::hostcuda_static, where
# that was built.
include(${CMAKE_CURRENT_LIST_DIR}/hostcudaTargets.cmake)
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/../../hostcuda/libcudart_static.a)
    include(${CMAKE_CURRENT_LIST_DIR}/hostcudaStaticTargets.cmake)
endif()
