// SPDX-License-Identifier: Apache-2.0
// A library that the test of the search order copies to where it may be found.
extern "C" int twLibraryToFind()
{
    return 1;
}
