# SPDX-License-Identifier: Apache-2.0
# tw_protobuf: protobuf for messages without descriptors, as a copy of the system's library whose file, soname and symbols have names of
# their own: whichever protobuf a program or a Python package brings, and however it was opened, neither answers for the other. What
# includes its headers is compiled with google::tw_proto for google::protobuf. A static library stays inside of ours, and needs no copy.
include_guard(GLOBAL)
add_library(tw_protobuf INTERFACE)
set(TW_OWN_PROTOBUF "" CACHE INTERNAL "")
list(GET Protobuf_LITE_LIBRARIES -1 library)
file(REAL_PATH ${library} library)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${library} ${CMAKE_CURRENT_LIST_DIR}/own_library.py)
if(NOT library MATCHES "[.]a$")
    find_package(Python3 QUIET COMPONENTS Interpreter)
    if(Python3_FOUND)
        execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/own_library.py ${library} ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}
                                google8protobuf=google8tw_proto libprotobuf-lite=libtw_proto-lite
                        RESULT_VARIABLE status OUTPUT_VARIABLE name ERROR_VARIABLE why OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
    else()
        set(status 1)
        set(why "there is no Python 3")
    endif()
    if(status EQUAL 0)
        set(TW_OWN_PROTOBUF ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${name} CACHE INTERNAL "")
    else()
        message(STATUS "No protobuf of our own, so that another one in a process may answer for it: ${why}")
    endif()
endif()
if(TW_OWN_PROTOBUF)
    add_library(tw_own_protobuf SHARED IMPORTED GLOBAL)
    set_target_properties(tw_own_protobuf PROPERTIES IMPORTED_LOCATION ${TW_OWN_PROTOBUF})
    target_compile_definitions(tw_protobuf INTERFACE protobuf=tw_proto)
    target_link_libraries(tw_protobuf INTERFACE tw_own_protobuf)
else()
    target_link_libraries(tw_protobuf INTERFACE ${Protobuf_LITE_LIBRARIES})
endif()
