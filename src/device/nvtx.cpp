// SPDX-License-Identifier: Apache-2.0
#include "device/nvtx.h"

#include <cstddef>
#include <cstdint>
#include <mutex>

#include <dlfcn.h>

namespace tw::device {

namespace {

// What profilers see: C structures and numbers of NVTX 3, which never change.
using Function = void (*)();
constexpr uint32_t kCallbacks = 1, kVersionInfo = 3; // export tables
constexpr int kModules = 7, kCore = 1;               // modules of functions count from 1
constexpr unsigned kFunctions = 16;                  // the most that a module has, number 0 unused
constexpr unsigned kPushA = 9, kPop = 11;            // of the core
constexpr uint32_t kVersion = 3;

// Filled in by the profiler, which may change them at any time. We call but two of them.
Function functions[kModules][kFunctions];
Function* places[kModules][kFunctions + 1]; // a null ends a module's list

int getModuleFunctionTable(int module, Function*** table, unsigned* size)
{
    if (module < kCore || module >= kModules)
        return 0;
    if (table)
        *table = places[module];
    if (size)
        *size = kFunctions;
    return 1;
}
void setInjectionVersion(uint32_t) {}

struct CallbackTable
{
    size_t bytes;
    int (*getModuleFunctionTable)(int module, Function*** table, unsigned* size);
};
struct VersionTable
{
    size_t bytes;
    uint32_t version, reserved;
    void (*setInjectionVersion)(uint32_t);
};

void const* getExportTable(uint32_t id)
{
    static constexpr CallbackTable kCallbackTable{sizeof(CallbackTable), getModuleFunctionTable};
    static constexpr VersionTable kVersionTable{sizeof(VersionTable), kVersion, 0, setInjectionVersion};
    return id == kCallbacks ? static_cast<void const*>(&kCallbackTable) : id == kVersionInfo ? &kVersionTable : nullptr;
}

class Injected final : public Nvtx
{
public:
    void push(char const* name) const override
    {
        if (auto const f = reinterpret_cast<int (*)(char const*)>(load(kPushA)))
            f(name);
    }
    void pop() const override
    {
        if (auto const f = reinterpret_cast<int (*)()>(load(kPop)))
            f();
    }

private:
    static Function load(unsigned i) { return *const_cast<Function volatile*>(&functions[kCore][i]); }
};

bool inject(std::string const& file, std::string& why)
{
    void* const library = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL); // stays: it knows our places
    if (!library) {
        char const* text = dlerror();
        why = text ? text : file + " cannot be opened";
        return false;
    }
    using GetExportTable = void const* (*)(uint32_t);
    auto const start = reinterpret_cast<int (*)(GetExportTable)>(dlsym(library, "InitializeInjectionNvtx2"));
    if (!start) {
        why = file + " has no InitializeInjectionNvtx2";
        return false;
    }
    for (int m = kCore; m < kModules; ++m)
        for (unsigned i = 1; i < kFunctions; ++i)
            places[m][i] = &functions[m][i];
    if (start(getExportTable) != 1) {
        why = file + " refused to start";
        return false;
    }
    return functions[kCore][kPushA] && functions[kCore][kPop];
}

} // namespace

Nvtx const* processNvtx(std::string const& injection, std::string& why)
{
    static Injected const kInjected;
    static bool isThere = false;
    static std::once_flag once;
    std::call_once(once, [&] { isThere = !injection.empty() && inject(injection, why); });
    return isThere ? &kInjected : nullptr;
}

} // namespace tw::device
