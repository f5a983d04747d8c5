// SPDX-License-Identifier: Apache-2.0
// One state for all stand-ins of a process, and the note by which they and libnvinfer find each other.
#include <pthread.h>

#include "modules.h"
#include "state.h"

namespace tw::hostcuda {
namespace {

// Raise it with each change of State and what it holds that the sizes below do not show.
constexpr std::uint64_t kStateLayout = 1;

constexpr std::uint64_t layout()
{
    std::uint64_t hash = kStateLayout;
    for (std::size_t const size : {sizeof(State), sizeof(Stream), sizeof(Event), sizeof(Capture), sizeof(Graph),
                                   sizeof(Node), sizeof(ThreadState), sizeof(Allocation)})
        hash = hash * 1000003 + size;
#ifdef __GLIBCXX__
    return hash;
#else
    return ~hash; // another standard library, other containers
#endif
}

} // namespace

// The assembler text below knows it by this name. Hidden: each module means its own.
extern "C" {
__attribute__((visibility("hidden"), used)) Module twHostCudaModule{&twHostCuda, layout(), {nullptr}, {false}};
}

// sizeof kNoteOwner, 4 bytes of content, kNoteType
asm(R"(
    .pushsection .note.tensorwright.hostcuda, "a", @note
    .balign 4
    .long 13, 4, 0x63756474
    .asciz "Tensorwright"
    .balign 4
0:  .long twHostCudaModule - 0b
    .popsection
)");
static_assert(sizeof kNoteOwner == 13 && kNoteType == 0x63756474);

namespace {

// Before other constructors of the module, which may ask libnvinfer for the device.
[[gnu::constructor(101)]] void announce()
{
    if (twHostCudaModule.isRelocated)
        return;
    pinModuleOf(&twHostCudaModule); // closures of its code lie in the shared state
    twHostCudaModule.isRelocated = true;
}

// The child of a fork has the forking thread alone: work of the others on the null stream will not end there.
void beforeFork()
{
    state().structure.lock();
}
void afterFork()
{
    state().structure.unlock();
}
void afterForkInChild()
{
    state().structure.unlock();
    std::recursive_mutex& order = state().legacy->order;
    if (order.try_lock()) // free, or the forking thread's own
        order.unlock();
    else
        new (&order) std::recursive_mutex;
}

State& joinProcess()
{
    announce(); // a client's constructor may have come first
    auto candidate = std::make_unique<State>();
    auto* const shared = static_cast<State*>(shareState(twHostCudaModule, candidate.get()));
    if (shared == candidate.get()) {
        (void)candidate.release();
        pthread_atfork(beforeFork, afterFork, afterForkInChild);
    }
    return *shared;
}

ThreadState& stateOfThisThread()
{
    thread_local ThreadState mine;
    return mine;
}

std::shared_ptr<Stream>& streamOfThisThread()
{
    thread_local std::shared_ptr<Stream> mine;
    return mine;
}

} // namespace

State::State() : thread(stateOfThisThread), threadStream(streamOfThisThread), legacy(std::make_shared<Stream>())
{
    legacy->id = nextStreamId++;
    legacy->isLegacy = true;
    legacy->handle = cudaStreamLegacy;
}

State& state()
{
    static State& instance = joinProcess();
    return instance;
}

} // namespace tw::hostcuda
