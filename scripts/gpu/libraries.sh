# SPDX-License-Identifier: Apache-2.0
# Sourced by what stages folders for machines with a GPU.

# carry_libraries FOLDER FILE: the libraries that FILE needs and such a machine may lack go to FOLDER, stripped: our own, and
# protobuf and zlib with what they need. libc and the compiler's are everywhere.
carry_libraries() {
    ldd "$2" | awk '$3 ~ /^\// { print $3 }' | while read -r library; do
        case $(basename "$library") in
        libnv* | libprotobuf* | libz.* | libabsl* | libtw_* | libtensorwright*) strip -o "$1/$(basename "$library")" "$library" ;;
        esac
    done
}
