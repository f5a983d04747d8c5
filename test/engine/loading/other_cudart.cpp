// SPDX-License-Identifier: Apache-2.0
// In the place of NVIDIA's libcudart: a library of that name which is no stand-in.
extern "C" int cudaRuntimeGetVersion(int* version)
{
    *version = 11080;
    return 0;
}
