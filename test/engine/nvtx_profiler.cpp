// SPDX-License-Identifier: Apache-2.0
// A profiler as NVTX 3 loads it, by NVTX_INJECTION64_PATH: keeps the names of ranges as they open, "/" where one
// closes.
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::string text;

int push(char const* name)
{
    std::lock_guard lock(mutex);
    text += std::string(name) + "\n";
    return 0;
}
int pop()
{
    std::lock_guard lock(mutex);
    text += "/\n";
    return 0;
}

using Function = void (*)();
struct Callbacks
{
    size_t bytes;
    int (*moduleFunctions)(int module, Function*** table, unsigned* size);
};

} // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(void const* (*exportTable)(uint32_t))
{
    auto const* callbacks = static_cast<Callbacks const*>(exportTable(1));
    if (!callbacks || callbacks->bytes < sizeof(Callbacks))
        return 0;
    for (int module = 1; module <= 6; ++module) {
        Function** table = nullptr;
        unsigned size = 0;
        if (!callbacks->moduleFunctions(module, &table, &size) || !table || size <= 6)
            return 0;
        if (module != 1)
            continue;
        if (size <= 11)
            return 0;
        *table[9] = reinterpret_cast<Function>(push);
        *table[11] = reinterpret_cast<Function>(pop);
    }
    return 1;
}

// What was recorded since the last call.
extern "C" __attribute__((visibility("default"))) char const* recordedRanges()
{
    static std::string taken;
    std::lock_guard lock(mutex);
    taken.swap(text);
    text.clear();
    return taken.c_str();
}
