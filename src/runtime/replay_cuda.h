// SPDX-License-Identifier: Apache-2.0
// Runs that come again with the same addresses are replayed as a CUDA graph: a launch for the whole network instead of
// one for each kernel. The second run with a set of addresses is captured, the first one only noted.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/workers.h"
#include "runtime/block.h"

namespace tw::runtime {

class CudaReplay
{
public:
    explicit CudaReplay(std::shared_ptr<cuda::Device const> device) : device_(std::move(device)) {}
    ~CudaReplay();
    CudaReplay(CudaReplay const&) = delete;
    CudaReplay& operator=(CudaReplay const&) = delete;

    // `run(stream)` gives the work of one run to a stream. The client's stream may itself be captured: then it is run
    // as it is.
    Result<void> execute(ExecuteArgs const& args, FunctionRef<Result<void>(void* stream)> run);
    // Graphs that there are, and why the last capture made none.
    size_t graphs() const;
    std::string const& whyNot() const { return whyNot_; }

private:
    struct Entry
    {
        std::vector<void const*> addresses; // arena, inputs, outputs
        void* graph = nullptr;              // executable; null: seen once, or it cannot be captured
        bool failed = false;
    };
    Result<void> capture(Entry& entry, FunctionRef<Result<void>(void* stream)> run);
    std::shared_ptr<cuda::Device const> device_;
    void* stream_ = nullptr;   // of captures
    std::list<Entry> entries_; // most recent first
    std::string whyNot_;
};

} // namespace tw::runtime
