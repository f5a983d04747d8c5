# SPDX-License-Identifier: Apache-2.0
# The system's protobuf as copies whose files, sonames and symbols have names of their own: whichever protobuf a program or a Python
# package brings, and however it was opened, neither answers for the other. What includes its headers is compiled with another name for
# `protobuf`. A static library stays inside of ours, and needs no copy.
#   tw_protobuf         for messages without descriptors: libtw_proto-lite.so, google::tw_proto
#   tw_protobuf_texts   for messages that are read as text, too: libtw_texts.so, google::tw_texts
include_guard(GLOBAL)
set(TW_OWN_PROTOBUF "" CACHE INTERNAL "") # the copies

# tw_own_protobuf(TARGET LIBRARY NAMESPACE OLD=NEW...): names of the same length.
function(tw_own_protobuf target library namespace)
    add_library(${target} INTERFACE)
    file(REAL_PATH ${library} file)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/own_library.py)
    set(status 1)
    if(NOT file MATCHES "[.]a$")
        find_package(Python3 QUIET COMPONENTS Interpreter)
        set(why "there is no Python 3")
        if(Python3_FOUND)
            execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/own_library.py ${file} ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}
                                    google8protobuf=google8${namespace} ${ARGN}
                            RESULT_VARIABLE status OUTPUT_VARIABLE name ERROR_VARIABLE why OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
        endif()
        if(NOT status EQUAL 0)
            message(STATUS "No protobuf of our own for ${target}, so that another protobuf in a process may answer for it: ${why}")
        endif()
    endif()
    if(status EQUAL 0)
        set(TW_OWN_PROTOBUF ${TW_OWN_PROTOBUF} ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${name} CACHE INTERNAL "")
        add_library(${target}_copy SHARED IMPORTED GLOBAL)
        set_target_properties(${target}_copy PROPERTIES IMPORTED_LOCATION ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${name})
        target_compile_definitions(${target} INTERFACE protobuf=${namespace})
        target_link_libraries(${target} INTERFACE ${target}_copy)
    else()
        target_link_libraries(${target} INTERFACE ${library})
    endif()
endfunction()

# tw_messages(NAME PROTO PROTOBUF): tw_NAME_messages, the library of the messages of a file tw_NAME.proto, and tw_NAME_schema, which makes
# their sources beside it.
function(tw_messages name proto protobuf)
    get_filename_component(folder ${proto} DIRECTORY)
    set(sources ${folder}/tw_${name}.pb.cc ${folder}/tw_${name}.pb.h)
    add_custom_command(
        OUTPUT ${sources}
        COMMAND ${Protobuf_PROTOC_EXECUTABLE} --cpp_out=${folder} --proto_path=${folder} ${proto}
        DEPENDS ${proto}
        VERBATIM)
    add_custom_target(tw_${name}_schema DEPENDS ${sources})
    set_source_files_properties(${folder}/tw_${name}.pb.cc PROPERTIES COMPILE_OPTIONS "-w")
    add_library(tw_${name}_messages STATIC ${folder}/tw_${name}.pb.cc)
    target_include_directories(tw_${name}_messages SYSTEM PUBLIC ${folder} ${Protobuf_INCLUDE_DIRS})
    target_link_libraries(tw_${name}_messages PUBLIC ${protobuf})
    add_dependencies(tw_${name}_messages tw_${name}_schema)
endfunction()

list(GET Protobuf_LITE_LIBRARIES -1 lite)
list(GET Protobuf_LIBRARIES -1 whole)
tw_own_protobuf(tw_protobuf ${lite} tw_proto libprotobuf-lite=libtw_proto-lite)
tw_own_protobuf(tw_protobuf_texts ${whole} tw_texts libprotobuf.so=libtw_texts.so google_2fprotobuf_2f=google_2ftw_texts_2f)
