// SPDX-License-Identifier: Apache-2.0
#include "hostcuda/modules.h"

#include <cstring>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

namespace tw::hostcuda {
namespace {

std::size_t alignUp(std::size_t value, std::size_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

// Notes need not be mapped: the segment must lie in one that is loaded and readable.
bool isMapped(dl_phdr_info const& info, ElfW(Phdr) const& notes)
{
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        ElfW(Phdr) const& s = info.dlpi_phdr[i];
        if (s.p_type == PT_LOAD && (s.p_flags & PF_R) != 0 && notes.p_vaddr >= s.p_vaddr &&
            notes.p_vaddr - s.p_vaddr <= s.p_filesz && notes.p_filesz <= s.p_filesz - (notes.p_vaddr - s.p_vaddr))
            return true;
    }
    return false;
}

Module* moduleInNotes(char const* notes, std::size_t sizeBytes, std::size_t alignment)
{
    std::size_t at = 0;
    while (sizeBytes - at >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) header;
        std::memcpy(&header, notes + at, sizeof header);
        std::size_t const name = at + sizeof header;
        std::size_t const content = at + alignUp(sizeof header + header.n_namesz, alignment);
        std::size_t const next = at + alignUp(content - at + header.n_descsz, alignment);
        if (content > sizeBytes || header.n_descsz > sizeBytes - content)
            return nullptr;
        if (header.n_type == kNoteType && header.n_namesz == sizeof kNoteOwner &&
            header.n_descsz == sizeof(std::int32_t) && std::memcmp(notes + name, kNoteOwner, sizeof kNoteOwner) == 0) {
            std::int32_t distance = 0;
            std::memcpy(&distance, notes + content, sizeof distance);
            return reinterpret_cast<Module*>(reinterpret_cast<std::uintptr_t>(notes + content) +
                                             static_cast<std::intptr_t>(distance));
        }
        if (next >= sizeBytes)
            return nullptr;
        at = next;
    }
    return nullptr;
}

Module* moduleIn(dl_phdr_info const& info)
{
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        ElfW(Phdr) const& segment = info.dlpi_phdr[i];
        if (segment.p_type != PT_NOTE || !isMapped(info, segment))
            continue;
        auto const* notes = reinterpret_cast<char const*>(info.dlpi_addr + segment.p_vaddr);
        if (Module* module = moduleInNotes(notes, segment.p_filesz, segment.p_align == 8 ? 8 : 4))
            return module;
    }
    return nullptr;
}

// libcudart.so.12, and libcudart-d0da41ae.so.11.0 as wheels name it.
bool isNamedCudart(char const* path)
{
    char const* const slash = std::strrchr(path, '/');
    char const* const file = slash != nullptr ? slash + 1 : path;
    return std::strncmp(file, "libcudart", 9) == 0 && std::strstr(file, ".so") != nullptr;
}

// The loader's lock is held while the list is walked and may be taken again by its owner.
template <class Visit>
void forEachLoaded(Visit visit)
{
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* arg) { return (*static_cast<Visit*>(arg))(*info) ? 0 : 1; }, &visit);
}

} // namespace

void* shareState(Module& own, void* candidate)
{
    void* shared = nullptr;
    forEachLoaded([&](dl_phdr_info const&) { // once, for the lock: two modules may come here at a time
        forEachLoaded([&](dl_phdr_info const& info) {
            Module* const module = moduleIn(info);
            if (module != nullptr && module->isRelocated && module->layout == own.layout && module->state != nullptr)
                shared = module->state;
            return shared == nullptr;
        });
        if (shared == nullptr)
            shared = candidate;
        own.state = shared;
        return false;
    });
    return shared;
}

void pinModuleOf(void const* address)
{
    Dl_info info{};
    link_map* module = nullptr;
    if (dladdr1(address, &info, reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP) == 0 || module == nullptr ||
        module->l_name == nullptr || module->l_name[0] == '\0') // the main program stays anyway
        return;
    (void)dlopen(module->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE); // this reference is never given back
}

Modules findModules()
{
    Modules found;
    bool isFirst = true;
    forEachLoaded([&](dl_phdr_info const& info) {
        bool const isProgram = isFirst;
        isFirst = false;
        Module* const module = moduleIn(info);
        if (module == nullptr) {
            found.hasOtherRuntime = found.hasOtherRuntime || isNamedCudart(info.dlpi_name);
            return true;
        }
        if (!module->isRelocated) {
            found.isComplete = false;
            return true;
        }
        TwHostCudaTable const* const table = module->table;
        if (found.table != nullptr || table->version != kTwHostCudaVersion ||
            table->sizeBytes < sizeof(TwHostCudaTable))
            return true;
        found.table = table;
        found.isInProgram = isProgram;
        return true;
    });
    return found;
}

std::uint64_t countOfLoads()
{
    std::uint64_t count = 0;
    forEachLoaded([&](dl_phdr_info const& info) {
        count = info.dlpi_adds + info.dlpi_subs; // both only grow
        return false;
    });
    return count;
}

} // namespace tw::hostcuda
