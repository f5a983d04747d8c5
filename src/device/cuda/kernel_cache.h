// SPDX-License-Identifier: Apache-2.0
// Compiled kernels in a folder, for the next build, in this process or in another. A file each, under a name that its source,
// its architecture and its compiler give. Whatever goes wrong with the folder (it is read-only, full, damaged, somebody else's)
// costs the time that kernels take to be compiled, nothing else. Several processes and threads may share it.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/result.h"

namespace tw::cuda {

struct Compiled;

// The bytes of a file; `key` is what find() must give to get it back.
std::string writeKernelFile(Compiled const& compiled, Hash128 const& key);
// An error says what is damaged. Files are untrusted.
Result<Compiled> readKernelFile(std::string_view bytes, Hash128 const& key);

class KernelCache
{
public:
    static constexpr int64_t kMostBytes = int64_t(512)
                                          << 20; // of all files; then the oldest go until half of it is left

    // The folder is made when the first kernel is kept. Empty: nothing is kept.
    explicit KernelCache(std::string folder, int64_t mostBytes = kMostBytes);

    std::optional<Compiled> find(Hash128 const& key);
    void keep(Hash128 const& key, Compiled const& compiled);

    std::string const& folder() const { return folder_; }
    int64_t foundCount() const { return found_; }
    // The first thing that went wrong since the last call, in a sentence; empty: nothing did.
    std::string takeComplaint();

private:
    bool isOurs(); // whether the folder is one that nobody else may write to
    void tidy();   // makes room, once a process
    void complain(std::string const& what);
    void note(std::string const& what); // the same under the lock
    std::string fileOf(Hash128 const& key) const;

    std::string folder_;
    int64_t mostBytes_;
    std::atomic<int64_t> found_ = 0;
    std::mutex mutex_; // of what follows
    bool isTidy_ = false, isBroken_ = false;
    std::optional<bool> isOurs_;
    std::string complaint_;
    bool hasComplained_ = false;
};

} // namespace tw::cuda
