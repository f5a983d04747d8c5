// SPDX-License-Identifier: Apache-2.0
// Linking is the test (surface_check.cpp with SURFACE_LINK); that the program ends well shows that its libraries load.
int main()
{
    return 0;
}
