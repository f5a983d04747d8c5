// SPDX-License-Identifier: Apache-2.0
// A library in NVRTC's place that compiles nothing: it keeps the texts that it is given, so that a test can ask for
// those of all op cases in seconds, and then compile them as it likes. Builds compile on many threads.
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace {

std::mutex mutex; // of the texts
std::vector<std::string> texts;

} // namespace

#define TW_EXPORT extern "C" __attribute__((visibility("default")))

TW_EXPORT int nvrtcVersion(int* major, int* minor)
{
    *major = 13;
    *minor = 0;
    return 0;
}
TW_EXPORT char const* nvrtcGetErrorString(int)
{
    return "";
}
TW_EXPORT int nvrtcCreateProgram(void** program, char const* source, char const*, int, char const* const*,
                                 char const* const*)
{
    std::lock_guard lock(mutex);
    texts.emplace_back(source);
    *program = &texts; // any program but none
    return 0;
}
TW_EXPORT int nvrtcDestroyProgram(void**)
{
    return 0;
}
TW_EXPORT int nvrtcCompileProgram(void*, int, char const* const*)
{
    return 0;
}
TW_EXPORT int nvrtcGetProgramLogSize(void*, size_t* bytes)
{
    *bytes = 0;
    return 0;
}
TW_EXPORT int nvrtcGetProgramLog(void*, char*)
{
    return 0;
}
// Some bytes: a kernel without code would be an error.
TW_EXPORT int nvrtcGetCUBINSize(void*, size_t* bytes)
{
    *bytes = 4;
    return 0;
}
TW_EXPORT int nvrtcGetCUBIN(void*, char* cubin)
{
    std::memset(cubin, 0, 4);
    return 0;
}

// Texts that came since the last call.
TW_EXPORT void twTakeSources(std::vector<std::string>* taken)
{
    std::lock_guard lock(mutex);
    taken->clear();
    taken->swap(texts);
}
