// SPDX-License-Identifier: Apache-2.0
// Loops and branches of a CUDA graph whose way the GPU decides, with no word of the host: conditional nodes, which
// drivers from CUDA 12.4 on have. They are put into the graph that a stream captures.
#pragma once

#include <memory>
#include <span>

#include "base/workers.h"
#include "device/cuda/driver.h"

namespace tw::cuda {

// A node takes its time, whatever runs in it: it makes a few trips of a loop in a row, a turn.
inline constexpr int kMostTripsOfTurn = 4;

// Bytes that go from one place to another at the end of a turn. Both may depend on a number: by `of`, of the trips that
// the turn has made (kDone), of trip `shift` of the turn, counted from the loop's first (kTrip: nothing where the turn
// has not come so far), of the trip that lies `shift` behind the turn (kNext).
struct ConditionalMove
{
    enum Of : uint32_t
    {
        kDone,
        kTrip,
        kNext
    };
    uint64_t from = 0, to = 0;           // of number 0
    int64_t fromStep = 0, toStep = 0;    // bytes from number to number
    uint64_t fromPitch = 0, toPitch = 0; // bytes from row to row
    uint32_t units = 0, rows = 0;        // pieces of 2^unitLog bytes in a row
    int32_t shift = 0;
    int32_t most = INT32_MAX; // numbers above it count as it
    uint32_t unitLog = 0;     // 0, 2 or 4, by setRows()
    uint32_t of = kDone;

    // The widest pieces that addresses, steps and pitches allow; these are set.
    void setRows(int64_t rowBytes, int64_t count);
};

// What ends a loop. Addresses of device memory, 0: there is none.
struct ConditionalTrips
{
    uint64_t trip = 0;         // i32: trips that are done; and another one behind it, aligned to both
    uint64_t count = 0;        // i32: of them at most
    int32_t limit = INT32_MAX; // the same
    // i32, of host memory that the GPU sees: becomes trips + 1 where `limit` ends the loop and nothing else would have.
    uint64_t broken = 0;
};

// What a body has put on its stream.
struct ConditionalTurn
{
    int trips = 1;
    uint64_t goesOn[kMostTripsOfTurn] = {}; // a bool for each trip: whether another one follows; 0: it does
    std::span<ConditionalMove const> moves;
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
    // A loop: `goesOn`: a bool, 0: there is none. The body gets a stream that captures and puts a turn on it, of which
    // the last trips may be behind the loop's end: nothing may be seen of them, for the end is found when all are
    // through. What they give leaves by the turn's moves alone; no place that one of these writes is read by another
    // one or is among `goesOn`. The trip is counted here and begins with 0.
    using LoopBody = FunctionRef<Result<ConditionalTurn>(CUstream_st* stream)>;
    Result<void> loop(CUstream_st* stream, ConditionalTrips const& trips, uint64_t goesOn, LoopBody body) const;
    // Moves before the first trip.
    Result<void> move(CUstream_st* stream, std::span<ConditionalMove const> moves) const;

private:
    ConditionalNodes(Driver const& driver, CUctx_st* context) : driver_(driver), context_(context) {}
    Result<uint64_t> handle(CUstream_st* stream) const;
    struct Handles
    {
        uint64_t yes = 0, no = 0; // 0: nobody asks
    };
    // `lead`: whether the turn's first trip is done.
    Result<void> advance(CUstream_st* stream, Handles handles, ConditionalTrips const& trips,
                         ConditionalTurn const& turn, bool lead) const;
    Result<void> add(CUstream_st* stream, uint64_t handle, int kind, Body body) const;

    Driver const& driver_;
    CUctx_st* context_;
    CUmod_st* module_ = nullptr;
    CUfunc_st* advance_ = nullptr;
};

// The kernel of that, in PTX.
extern char const* const kConditionalText;

} // namespace tw::cuda
