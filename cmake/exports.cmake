# SPDX-License-Identifier: Apache-2.0
# tw_export_published(TARGET): the shared library exports the published surface of 8.5 and nothing else.
set(TW_EXPORTS_MAP ${CMAKE_CURRENT_LIST_DIR}/exports.map)
function(tw_export_published target)
    target_link_options(${target} PRIVATE LINKER:--version-script=${TW_EXPORTS_MAP})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${TW_EXPORTS_MAP})
endfunction()
