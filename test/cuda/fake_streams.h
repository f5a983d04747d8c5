// SPDX-License-Identifier: Apache-2.0
// What the files of the fake driver share: streams, and what is put on them.
#pragma once

#include <functional>
#include <vector>

struct CUstream_st;

namespace tw::fake {

struct Context
{
    int device = 0;
};
using Work = std::vector<std::function<void()>>;
struct Stream
{
    Context* context = nullptr;
    bool isCapturing = false, isInvalid = false;
    Work work;             // captured
    Work* graph = nullptr; // where that goes instead
};

inline Stream* streamOf(CUstream_st* s)
{
    return reinterpret_cast<Stream*>(s); // null: the default stream of whatever context is current
}

// Now, or when the graph that captures it is launched.
inline void runOrCapture(CUstream_st* stream, std::function<void()> work)
{
    if (Stream* const s = streamOf(stream); s && s->isCapturing)
        (s->graph ? *s->graph : s->work).push_back(std::move(work));
    else
        work();
}

// The kernel of conditional nodes, by its parameters (fake_graphs.cpp); null: this driver has no such nodes.
extern void (*advance)(void const* parameters);
constexpr size_t kAdvanceBytes = 2400;

} // namespace tw::fake
