# SPDX-License-Identifier: Apache-2.0
# tw_embed(OUTPUT FILE...): the build writes the C++ file OUTPUT, which holds the text of each FILE under its path below the
# current folder (src/kernels/cuda/common/source.h declares what it defines). A changed FILE writes it again.
# The same file is the script that does so: cmake -DOUTPUT=... -DROOT=... "-DFILES=a;b" -P embed.cmake
if(NOT CMAKE_SCRIPT_MODE_FILE)
    set(TW_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
    function(tw_embed output)
        add_custom_command(
            OUTPUT ${output}
            COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DROOT=${CMAKE_CURRENT_SOURCE_DIR} "-DFILES=${ARGN}" -P ${TW_EMBED_SCRIPT}
            DEPENDS ${ARGN} ${TW_EMBED_SCRIPT}
            COMMENT "Embedding device code"
            VERBATIM)
    endfunction()
    return()
endif()

set(entries)
foreach(file IN LISTS FILES)
    file(READ ${file} text)
    if(text MATCHES "[)]tw\"")
        message(FATAL_ERROR "${file}: ends the raw string that holds it: )tw\"")
    endif()
    file(RELATIVE_PATH name ${ROOT} ${file})
    string(APPEND entries "    {\"${name}\", R\"tw(${text})tw\"sv},\n") # sv: their lengths are known, and not counted by the compiler
endforeach()
file(WRITE ${OUTPUT} "// Written by cmake/embed.cmake.
#include \"kernels/cuda/common/source.h\"

namespace tw::cuda {

namespace {

using namespace std::string_view_literals;

constexpr SourceFile kFiles[] = {
${entries}};

} // namespace

std::span<SourceFile const> sourceFiles()
{
    return kFiles;
}

} // namespace tw::cuda
")
