// SPDX-License-Identifier: Apache-2.0
// Loops and branches of a CUDA graph whose way the GPU decides, with no word of the host: conditional nodes, which
// drivers from CUDA 12.4 on have. They are put into the graph that a stream captures.
#pragma once

#include <memory>
#include <span>

#include "base/workers.h"
#include "device/cuda/driver.h"

namespace tw::cuda {

// Bytes that go from one place to another, both of which may depend on the trip of a loop.
struct ConditionalMove
{
    uint64_t from = 0, to = 0;           // of trip 0
    int64_t fromStep = 0, toStep = 0;    // bytes from trip to trip
    uint64_t fromPitch = 0, toPitch = 0; // bytes from row to row
    uint32_t units = 0, rows = 0;        // pieces of 2^unitLog bytes in a row
    int32_t shift = 0;                   // added to the trip
    int32_t most = INT32_MAX;            // the last trip that counts
    uint32_t unitLog = 0;                // 0, 2 or 4, by setRows()
    uint32_t pad = 0;

    // The widest pieces that addresses, steps and pitches allow; these are set.
    void setRows(int64_t rowBytes, int64_t count);
};

// When the body of a loop runs (again). Addresses of device memory, 0: there is none.
struct ConditionalTrips
{
    uint64_t goesOn = 0; // bool
    uint64_t trip = 0;   // i32: trips that are done; and another one behind it, aligned to both
    uint64_t count = 0;  // i32: of them at most
    uint64_t broken =
        0; // i32, of host memory that the GPU sees: becomes trips + 1 where goesOn and count say more than `limit`
    int32_t limit = INT32_MAX;
};

class ConditionalNodes
{
public:
    // The context is current and outlives them. Null: the driver has none.
    static std::unique_ptr<ConditionalNodes const> create(Driver const& driver, CUctx_st* context);
    ~ConditionalNodes();
    ConditionalNodes(ConditionalNodes const&) = delete;
    ConditionalNodes& operator=(ConditionalNodes const&) = delete;

    using Body = FunctionRef<Result<void>(CUstream_st* stream)>;
    // On a stream that captures: `then` if the bool at `condition` holds, else `otherwise`. Bodies get a stream of
    // their own, which captures, too.
    Result<void> branch(CUstream_st* stream, uint64_t condition, Body then, Body otherwise) const;
    // The same, as long as `trips` says so. What it reads is there; the body leaves it there again, but for the trip,
    // which is counted here and begins with 0. A node takes its time: `atOnce` trips are put into one, of which the last
    // ones may be behind the loop's end. Of a trip there, nothing may be seen: its results leave by move() alone.
    Result<void> loop(CUstream_st* stream, ConditionalTrips const& trips, int atOnce, Body body) const;
    // Of the loop's trip.
    Result<void> move(CUstream_st* stream, uint64_t trip, std::span<ConditionalMove const> moves) const;

private:
    ConditionalNodes(Driver const& driver, CUctx_st* context) : driver_(driver), context_(context) {}
    Result<uint64_t> handle(CUstream_st* stream) const;
    Result<void> decide(CUstream_st* stream, uint64_t handle, uint64_t otherwise, ConditionalTrips const& trips,
                        uint32_t bump) const;
    Result<void> add(CUstream_st* stream, uint64_t handle, int kind, Body body) const;

    Driver const& driver_;
    CUctx_st* context_;
    CUmod_st* module_ = nullptr;
    CUfunc_st *decide_ = nullptr, *move_ = nullptr;
};

// The kernels of that, in PTX.
extern char const* const kConditionalText;

} // namespace tw::cuda
