# SPDX-License-Identifier: Apache-2.0
# Files that lie together are compiled together: most of a small file's time goes to headers and templates that its neighbours
# use too (docs/build.md has the figures). TW_UNITY=OFF compiles each file alone, as clang-tidy wants it.
option(TW_UNITY "Compile files that lie together as one unit" ON)

# tw_unit(NAME FILE...): these files are one unit of whatever target has them.
function(tw_unit name)
    set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${name})
endfunction()

# tw_units(NAME BYTES FILE...): the files, in this order, as units NAME_0, NAME_1, ... A unit ends where the next file would make
# it larger than BYTES. Where the files are of several folders, none is divided: an op is edited alone.
function(tw_units name bytes)
    set(folders)
    foreach(file IN LISTS ARGN)
        get_filename_component(folder ${file} DIRECTORY)
        list(APPEND folders ${folder})
    endforeach()
    set(unique ${folders})
    list(REMOVE_DUPLICATES unique)
    list(LENGTH unique folder_count)
    set(number 0)
    set(size 0)
    set(last "")
    foreach(file folder IN ZIP_LISTS ARGN folders)
        get_filename_component(path ${file} ABSOLUTE)
        if(EXISTS ${path})
            file(SIZE ${path} file_size)
        else() # the build writes it
            set(file_size 1000)
        endif()
        math(EXPR size "${size} + ${file_size}")
        if(size GREATER bytes AND NOT size EQUAL file_size AND (folder_count EQUAL 1 OR NOT folder STREQUAL last))
            math(EXPR number "${number} + 1")
            set(size ${file_size})
        endif()
        set(last ${folder})
        tw_unit(${name}_${number} ${file})
    endforeach()
endfunction()

# tw_in_units(TARGET): compiles its files in the units that tw_unit() and tw_units() named.
function(tw_in_units target)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${TW_UNITY} UNITY_BUILD_MODE GROUP)
endfunction()
