// SPDX-License-Identifier: Apache-2.0
// Which stand-ins are in this process. Programs link them, Python and plugin systems load them where no symbol of
// theirs can be looked up (RTLD_LOCAL), and a library may hold the static one and export nothing of it. So each
// announces itself by a note in its ELF file, an address in a PT_NOTE segment, which dl_iterate_phdr() finds in every
// loaded module. Compiled into the stand-ins, which share their state by it, and into libnvinfer.
#pragma once

#include <atomic>
#include <cstdint>

#include "hostcuda/host_cuda_table.h"

namespace tw::hostcuda {

// What the note points to: one for each stand-in.
struct Module
{
    TwHostCudaTable const* table;
    std::uint64_t layout;          // of what `state` points to: stand-ins of equal layout share one
    std::atomic<void*> state;      // null before the first use; written under the loader's lock (shareState())
    std::atomic<bool> isRelocated; // the loader lists modules whose pointers it has not filled in yet
};

// `owner` and `type` of the note; its content is the Module's distance from the content itself, 4 bytes with a sign.
constexpr char kNoteOwner[] = "Tensorwright";
constexpr std::uint32_t kNoteType = 0x63756474;

// The state of the stand-ins of this process, which all modules of `own`'s layout use: the state of the first that
// asked. Returns it, which is `candidate` when nobody asked before.
void* shareState(Module& own, void* candidate);

// Keeps the module that holds the address loaded until the process ends.
void pinModuleOf(void const* address);

struct Modules
{
    TwHostCudaTable const* table = nullptr; // of a stand-in with the version that this file was compiled for; or null
    bool isInProgram = false;               // the main program holds the stand-in
    bool hasOtherRuntime = false;           // NVIDIA's shared libcudart is loaded, too
    bool isComplete = true;                 // false: a stand-in is being loaded right now
};
Modules findModules();

// Changes when modules are loaded or unloaded.
std::uint64_t countOfLoads();

} // namespace tw::hostcuda
