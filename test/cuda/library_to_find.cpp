// SPDX-License-Identifier: Apache-2.0
// A library that the test of the search order copies to where it may be found.
// How often it was called: a copy in memory counts by itself.
extern "C" __attribute__((visibility("default"))) int twLibraryToFind()
{
    static int calls = 0;
    return ++calls;
}
