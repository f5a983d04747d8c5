# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` lays out, for both ways that users of 8.5 find it: find_library/-lnvinfer with the headers in
# include/, and find_package(tensorwright) or pkg-config.
#
#   <prefix>/include              the public headers         <prefix>/include/hostcuda   CUDA runtime headers of our own
#   <prefix>/lib                  libnvinfer.so.8, ...        <prefix>/lib/hostcuda       libcudart for machines without a GPU
#   <prefix>/bin                  trtexec                     <prefix>/lib/cmake/tensorwright, <prefix>/lib/pkgconfig
#
# The stand-in CUDA runtime never lies directly in include/ or lib/, where it could shadow a toolkit.
include(CMakePackageConfigHelpers)

# Fixed and relative to the prefix: the package files compute their paths from where they lie.
set(TW_INSTALL_INCLUDE include)
set(TW_INSTALL_LIB lib)
set(TW_INSTALL_BIN bin)
set(TW_PACKAGE_DIR ${TW_INSTALL_LIB}/cmake/tensorwright)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/ DESTINATION ${TW_INSTALL_INCLUDE} FILES_MATCHING PATTERN "*.h")

set(TW_LINK_FLAGS)
foreach(library nvinfer nvonnxparser nvinfer_plugin nvparsers cudla)
    if(TARGET ${library})
        if(NOT library STREQUAL cudla) # who wants it names it
            string(APPEND TW_LINK_FLAGS " -l${library}")
        endif()
        # The libraries lie side by side and find each other.
        set_target_properties(${library} PROPERTIES INSTALL_RPATH "$ORIGIN")
        install(TARGETS ${library} LIBRARY DESTINATION ${TW_INSTALL_LIB} RUNTIME DESTINATION ${TW_INSTALL_BIN})
    endif()
endforeach()
foreach(library nvinfer_safe nvinfer_checker) # opened by name, mostly: no program links them for the rest
    if(TARGET ${library})
        set_target_properties(${library} PROPERTIES INSTALL_RPATH "$ORIGIN")
        install(TARGETS ${library} LIBRARY DESTINATION ${TW_INSTALL_LIB})
    endif()
endforeach()
if(TW_OWN_PROTOBUF)
    install(PROGRAMS ${TW_OWN_PROTOBUF} DESTINATION ${TW_INSTALL_LIB})
endif()
if(TARGET trtexec)
    install(TARGETS trtexec RUNTIME DESTINATION ${TW_INSTALL_BIN})
endif()
# The stand-in installs itself: src/hostcuda/CMakeLists.txt.

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tensorwright-config.cmake.in
                              ${CMAKE_BINARY_DIR}/tensorwright-config.cmake
                              INSTALL_DESTINATION ${TW_PACKAGE_DIR}
                              PATH_VARS TW_INSTALL_INCLUDE TW_INSTALL_LIB)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tensorwright-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tensorwright-config.cmake ${CMAKE_BINARY_DIR}/tensorwright-config-version.cmake
        DESTINATION ${TW_PACKAGE_DIR})

configure_file(${CMAKE_CURRENT_LIST_DIR}/tensorwright.pc.in ${CMAKE_BINARY_DIR}/tensorwright.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tensorwright.pc DESTINATION ${TW_INSTALL_LIB}/pkgconfig)
