// SPDX-License-Identifier: Apache-2.0
// All steps in one launch, FP16, the recurrent weights in registers. The sequences are cut into groups with blocks of
// their own; a block has kUnitWarps * kWarpUnits hidden units of a direction, its warps share them and k. A warp holds
// its weights as the first factors of mma.sync, rows so chosen that all gates of a unit end in one lane; with
// kPartWarps > 1 sums meet in shared memory. States go to the next step
//   kExchange 0: in shared memory; one block has all units.
//   kExchange 1: to the cluster's blocks, each word counted by the barrier of the block that gets it.
//   kExchange 2: through memory. Each step has a place of its own, filled with kEmpty before the launch, which no state
//                is: who needs a word reads it until it is there. All blocks run at once.
// In 0 and 1 the next step's states overwrite those of the step before: all warps have read these, for a state is
// finished after the sums of all k, and a step begins when all states are there.
//
// A unit's 8 k stand together in a chunk of 16 bytes, what a lane takes of a row at once: its words 2 j and 2 j + 1 are
// numbers in product j of a part (32 k). So k stands in another order than in memory, the same one in both factors.
//   int kCell, kHidden, kExchange, kWarpUnits (8 or 16), kUnitWarps, kPartWarps, kColumns (8 sequences each); bool
//   kWaitsForOne, kKnownWeights (constants), kReverse (of direction 0), kLinear (GRU: always), kInputForget; float kClip (0: none); Element: f16
//   float functionOf(int direction, int i, float x)
#pragma once

#include "kernels/cuda/common/hopper.cuh"
#include "ops/recurrence/recurrence_elements.cuh"
#include "ops/recurrence/recurrence_params.h"
#include "ops/recurrence/recurrence_travel.cuh"

namespace tw::ops::recurrence {

constexpr bool kInBlock = kExchange == 0, kInCluster = kExchange == 1, kInMemory = kExchange == 2;
constexpr int kUnits = kWarpUnits * kUnitWarps, kWarps = kUnitWarps * kPartWarps, kBlockThreads = kWarps * 32;
constexpr int kSlots = kWarpUnits / 8;                          // units of a lane
constexpr int kTiles = kSlots == 2 ? kGates : (kGates + 1) / 2; // 16 rows: a gate's units, or two gates of 8 units
constexpr int kChunks = (kHidden + 7) / 8, kParts = (kChunks + 3) / 4;
constexpr int kWarpParts = (kParts + kPartWarps - 1) / kPartWarps;
constexpr int kItems = kSlots * kColumns * 2;                // (unit, sequence) of a lane's sums
constexpr int kOwn = (kItems + kPartWarps - 1) / kPartWarps; // those that it finishes
constexpr int kTogether = kPartWarps == 1 ? kSlots : 1;      // of the same sequences, without a branch between
constexpr int kRowBytes = kParts * 64, kBufferBytes = kParts * kColumns * 512;
constexpr int kSumBytes = kPartWarps > 1 ? kUnitWarps* kItems* kPartWarps * 512 : 0;
// Through memory a warp may be a step ahead of one that still reads sums.
constexpr int kSumBuffers = kInMemory ? 2 : 1;
constexpr int kBuffersEnd = kInMemory ? 0 : 2 * kBufferBytes, kSumsEnd = kBuffersEnd + kSumBuffers * kSumBytes;
constexpr int kStageEnd = kSumsEnd + (kInBlock ? 0 : kWarps * kOwn * 64),
              kBiasEnd = kStageEnd + (kGates + 1) * kUnits * 4;
constexpr int kAhead = kColumns == 1 ? 4 : kColumns == 2 ? 2 : 1; // parts whose states are on their way

extern __shared__ unit16 memory[];

struct Steps
{
    PersistentParams const& p;
    int d, first, count; // first: unit of the block; count: sequences of the group
    int sequence0;       // of the group
    char* exchange;      // of this direction and group, [steps][groupSize] of kRowBytes
    u32 shared;          // the block's shared memory
    int lane, unitWarp, partWarp;
    u32 weights[kWarpParts][kTiles][2][4]; // of both halves of a tile
    float h[kOwn], c[kOwn];
    int lengths[kOwn], inputAt[kOwn], outputAt[kOwn];
    f16 inputs[kOwn][kGates]; // of the next step

    // Item o of this warp: slot, column of 8 sequences, and which of its two in a lane's sums.
    TW_INLINE int itemOf(int o) const { return o * kPartWarps + partWarp; }
    TW_INLINE static int slotOf(int item) { return item % kSlots; }
    TW_INLINE static int columnOfItem(int item) { return item / kSlots / 2; }
    TW_INLINE static int sideOf(int item) { return item / kSlots % 2; }
    TW_INLINE static int firstSequence(int item) { return columnOfItem(item) * 8 + sideOf(item) * 4; }
    TW_INLINE int firstUnit() const { return first + unitWarp * kWarpUnits; }
    TW_INLINE int unitOf(int o) const { return firstUnit() + slotOf(itemOf(o)) * 8 + lane / 4; }
    TW_INLINE int chunkOf(int o) const { return firstUnit() / 8 + slotOf(itemOf(o)); }
    // Sequences e * 4 to e * 4 + 3 of a column are its products' columns e, 2 + e, 4 + e, 6 + e: few sequences are few items.
    TW_INLINE int sequenceOf(int o) const { return firstSequence(itemOf(o)) + lane % 4; }
    // Of the whole warp.
    TW_INLINE bool isLive(int o) const
    {
        return itemOf(o) < kItems && firstSequence(itemOf(o)) < count && chunkOf(o) < kChunks;
    }
    TW_INLINE bool has(int o) const { return isLive(o) && sequenceOf(o) < count && unitOf(o) < kHidden; }
    TW_INLINE i64 state(int o) const { return d * p.stateDir + (sequence0 + sequenceOf(o)) * p.stateRow + unitOf(o); }
    TW_INLINE bool isReverse() const { return d == 1 || kReverse; }
    TW_INLINE float function(int i, float x) const { return functionOf(d, i, clipped(x)); }
    TW_INLINE float peephole(int which, int o, float cell) const
    {
        return p.peepholes && unitOf(o) < kHidden ? at(p.peepholes, (i64(d) * 3 + which) * kHidden + unitOf(o)) * cell
                                                  : 0.0f;
    }
    TW_INLINE u32 barrier(int i) const { return shared + kBiasEnd + i * 8; }
    // Of the chunk of 8 units, of column `column` of the products, in a buffer.
    TW_INLINE static int placeOf(int chunk, int column)
    {
        return (chunk / 4 * kColumns * 32 + column / 8 * 32 + column % 8 * 4 + chunk % 4) * 16;
    }
    TW_INLINE int columnOf(int o) const
    {
        int const item = itemOf(o);
        return columnOfItem(item) * 8 + lane % 4 * 2 + sideOf(item);
    }
    TW_INLINE float* biases() const { return reinterpret_cast<float*>(reinterpret_cast<char*>(memory) + kStageEnd); }

    TW_INLINE Unit weightsAt(i64 row, int k) const
    {
        Element const* const from = static_cast<Element const*>(p.r) + row * kHidden + k;
        union {
            Unit all;
            Element each[8];
        } v;
        if constexpr (kHidden % 8 == 0) {
            v.all = *reinterpret_cast<Unit const*>(from);
        } else {
#pragma unroll
            for (int e = 0; e < 8; ++e)
                v.each[e] = k + e < kHidden ? from[e] : store<Element>(0.0f);
        }
        return v.all;
    }
    TW_INLINE void loadWeights()
    {
#pragma unroll
        for (int i = 0; i < kWarpParts; ++i)
#pragma unroll
            for (int t = 0; t < kTiles; ++t)
#pragma unroll
                for (int s = 0; s < 2; ++s) {
                    int const gate = kSlots == 2 ? t : 2 * t + s,
                              unit = firstUnit() + (kSlots == 2 ? s * 8 : 0) + lane / 4;
                    int const k = (partWarp + i * kPartWarps) * 32 + lane % 4 * 8;
                    Unit u = {};
                    if (gate < kGates && unit < kHidden && k < kHidden)
                        u = weightsAt((i64(d) * kGates + gate) * kHidden + unit, k);
#pragma unroll
                    for (int w = 0; w < 4; ++w)
                        weights[i][t][s][w] = u.v[w];
                }
    }
    // [kGates][kUnits] of w and of the states, but for what GRU adds before the reset gate acts, which stands last.
    TW_INLINE void loadBiases() const
    {
        for (int i = threadIdx.x; i < (kGates + 1) * kUnits; i += kBlockThreads) {
            int const g = i / kUnits, unit = first + i % kUnits, gate = min(g, kGates - 1);
            float sum = 0;
            if (p.bias && unit < kHidden) {
                i64 const row = (i64(d) * 2 * kGates + gate) * kHidden + unit;
                float const ofState = at(p.bias, row + i64(kGates) * kHidden);
                bool const apart = kCell == 2 && gate == 2;
                sum = g == kGates ? (apart ? ofState : 0.0f) : at(p.bias, row) + (apart ? 0.0f : ofState);
            }
            biases()[i] = sum;
        }
    }
    TW_INLINE void loadStates()
    {
#pragma unroll
        for (int o = 0; o < kOwn; ++o) {
            bool const given = has(o);
            int const n = sequence0 + sequenceOf(o);
            h[o] = given && p.h0 ? at(p.h0, state(o)) : 0.0f;
            c[o] = given && p.c0 ? at(p.c0, state(o)) : 0.0f;
            i64 const l = given && p.lengths ? p.lengths[n] : p.steps;
            lengths[o] = given ? int(l < 0 ? 0 : l < p.steps ? l : p.steps) : 0;
            inputAt[o] = n * int(p.productRow) + d * int(p.productDir) + unitOf(o);
            outputAt[o] = n * int(p.yRow) + d * kHidden + unitOf(o);
        }
    }
    // Of step i of an item; past the sequence's end: the step itself.
    TW_INLINE int timeOf(int i, int o) const
    {
        return isReverse() && i < lengths[o] ? lengths[o] - 1 - i : i;
    }
    // What all gates get of x in step i.
    TW_INLINE void loadInputs(int i)
    {
        f16 const* const products = static_cast<f16 const*>(p.products);
#pragma unroll
        for (int o = 0; o < kOwn; ++o) {
            bool const given = i < lengths[o];
            int const from = given ? timeOf(i, o) * int(p.productStep) + inputAt[o] : 0;
#pragma unroll
            for (int g = 0; g < kGates; ++g) {
                inputs[o][g].bits = 0;
                if (given)
                    inputs[o][g] = products[from + g * int(p.productGate)];
            }
        }
    }

    // The states that step i begins with go where they are needed.
    TW_INLINE void publish(int i) const
    {
        if constexpr (!kInBlock)
            __syncwarp();
#pragma unroll
        for (int o = 0; o < kOwn; ++o) {
            if (!isLive(o))
                continue;
            f16 const v = floatToHalf(unitOf(o) < kHidden ? h[o] : 0.0f);
            u32 const to = shared + (kInBlock ? (i & 1) * kBufferBytes + placeOf(chunkOf(o), columnOf(o)) + lane / 4 * 2
                                              : stageOf(o) + lane % 4 * 16 + lane / 4 * 2);
            if (!kInBlock || sequenceOf(o) < count)
                storeWord(to, v);
        }
        if constexpr (!kInBlock) {
            __syncwarp();
#pragma unroll
            for (int o = 0; o < kOwn; ++o)
                if (isLive(o) && sequenceOf(o) < count)
                    sendChunk(i, o, loadSharedUnit(shared + stageOf(o) + lane % 4 * 16));
        }
    }
    TW_INLINE int stageOf(int o) const
    {
        return kSumsEnd + ((unitWarp * kPartWarps + partWarp) * kOwn + o) * 64;
    }
    // Of 8 units of a sequence; 8 lanes have it.
    TW_INLINE void sendChunk(int i, int o, Unit const& u) const
    {
        if constexpr (kInCluster) {
            u32 const to = shared + (i & 1) * kBufferBytes + placeOf(chunkOf(o), columnOf(o));
            for (int rank = lane / 4; rank < p.blocks; rank += 8)
                storeCounted(addressAt(to, u32(rank)), addressAt(barrier(i & 1), u32(rank)), u);
        } else if (lane < 4) {
            storeUnit(exchange + (i64(i) * p.groupSize + sequenceOf(o)) * kRowBytes + chunkOf(o) * 16, u);
        }
    }
    // All states are there that step i begins with; in memory: see multiply().
    TW_INLINE void wait(int i) const
    {
        if constexpr (kInBlock)
            __syncthreads();
        if constexpr (kInCluster) {
            barrierWait(barrier(i & 1), u32(i) / 2 & 1);
            if (threadIdx.x == 0) // of step i + 2
                barrierExpect(barrier(i & 1), u32(kChunks * count * 16));
        }
    }

    TW_INLINE void multiplyPart(float (&sum)[kTiles][kColumns][4], int i, Unit const (&b)[kColumns]) const
    {
#pragma unroll
        for (int j = 0; j < 2; ++j)
#pragma unroll
            for (int t = 0; t < kTiles; ++t) {
                auto const& a = weights[i][t];
#pragma unroll
                for (int column = 0; column < kColumns; ++column)
                    mma(sum[t][column], {a[0][2 * j], a[1][2 * j], a[0][2 * j + 1], a[1][2 * j + 1]},
                        b[column].v[2 * j], b[column].v[2 * j + 1]);
            }
    }
    // Those of parts FIRST to LAST - 1 that are missing, again.
    template <int FIRST, int LAST>
    TW_INLINE static void readParts(Unit (&b)[kWarpParts][kColumns], char const* from)
    {
#pragma unroll
        for (int k = FIRST; k < LAST; ++k)
#pragma unroll
            for (int j = 0; j < kColumns; ++j)
                readAgain(b[k][j], from + k * kPartWarps * 64 + j * 8 * kRowBytes, isMissing(b[k][j]));
    }
    TW_INLINE static bool anyIsMissing(Unit const (&b)[kColumns])
    {
        bool missing = false;
#pragma unroll
        for (int j = 0; j < kColumns; ++j)
            missing |= isMissing(b[j]);
        return __any_sync(0xFFFFFFFF, missing);
    }
    TW_INLINE void readAndMultiply(float (&sum)[kTiles][kColumns][4], int i) const
    {
        int const column = lane / 4, n = column % 2 * 4 + column / 2;
        char const* const from = exchange + (i64(i) * p.groupSize + n) * kRowBytes + (partWarp * 4 + lane % 4) * 16;
        Unit b[kWarpParts][kColumns];
#pragma unroll
        for (int k = 0; k < kWarpParts; ++k)
#pragma unroll
            for (int j = 0; j < kColumns; ++j) {
                bool const given = (partWarp + k * kPartWarps) * 4 + lane % 4 < kChunks && n + j * 8 < count;
#pragma unroll
                for (int w = 0; w < 4; ++w)
                    b[k][j].v[w] = given ? kEmpty : 0;
            }
        if constexpr (kWaitsForOne) // all blocks that read everything again and again would hold up what they wait for
            while (anyIsMissing(b[0]))
                readParts<0, 1>(b, from);
        readParts<0, kWarpParts>(b, from);
#pragma unroll
        for (int k = 0; k < kWarpParts; ++k) {
            while (anyIsMissing(b[k]))
                readParts<0, kWarpParts>(b, from);
            multiplyPart(sum, k, b[k]);
        }
    }
    TW_INLINE void multiply(float (&sum)[kTiles][kColumns][4], int i) const
    {
        if constexpr (kInMemory) {
            readAndMultiply(sum, i);
        } else {
            u32 const from = shared + (i & 1) * kBufferBytes + lane * 16;
#pragma unroll
            for (int k0 = 0; k0 < kWarpParts; k0 += kAhead) {
                Unit b[kAhead][kColumns];
#pragma unroll
                for (int k = 0; k < kAhead && k0 + k < kWarpParts; ++k)
#pragma unroll
                    for (int j = 0; j < kColumns; ++j) {
                        int const part = partWarp + (k0 + k) * kPartWarps;
                        b[k][j] = {};
                        if (kParts % kPartWarps == 0 || part < kParts)
                            b[k][j] = loadSharedUnit(from + (part * kColumns + j) * 512);
                    }
#pragma unroll
                for (int k = 0; k < kAhead && k0 + k < kWarpParts; ++k)
                    multiplyPart(sum, k0 + k, b[k]);
            }
        }
    }
    TW_INLINE static float sumOf(float const (&sum)[kTiles][kColumns][4], int item, int gate)
    {
        int const tile = kSlots == 2 ? gate : gate / 2, half = kSlots == 2 ? slotOf(item) : gate % 2;
        return sum[tile][columnOfItem(item)][half * 2 + sideOf(item)];
    }
    // Of this warp's items, what R h gives.
    TW_INLINE void gather(float (&of)[kOwn][kGates], float const (&sum)[kTiles][kColumns][4], int i) const
    {
        if constexpr (kPartWarps == 1) {
#pragma unroll
            for (int o = 0; o < kOwn; ++o)
#pragma unroll
                for (int g = 0; g < kGates; ++g)
                    of[o][g] = sumOf(sum, o, g);
            return;
        }
        u32 const at = shared + kBuffersEnd + (kSumBuffers > 1 ? (i & 1) * kSumBytes : 0) +
                       unitWarp * (kItems * kPartWarps * 512) + lane * 16;
#pragma unroll
        for (int item = 0; item < kItems; ++item) {
            if (firstSequence(item) >= count)
                continue;
            Unit u;
#pragma unroll
            for (int g = 0; g < 4; ++g)
                u.v[g] = g < kGates ? __float_as_uint(sumOf(sum, item, g < kGates ? g : 0)) : 0;
            storeShared(at + (item * kPartWarps + partWarp) * 512, u);
        }
        groupSync(1 + unitWarp, kPartWarps * 32);
#pragma unroll
        for (int o = 0; o < kOwn; ++o) {
#pragma unroll
            for (int g = 0; g < kGates; ++g)
                of[o][g] = 0;
            if (!isLive(o))
                continue;
#pragma unroll
            for (int part = 0; part < kPartWarps; ++part) {
                Unit const u = loadSharedUnit(at + (itemOf(o) * kPartWarps + part) * 512);
#pragma unroll
                for (int g = 0; g < kGates; ++g)
                    of[o][g] += __uint_as_float(u.v[g]);
            }
        }
    }

    TW_INLINE void advance(int o, float const (&in)[kGates], float const (&ofH)[kGates], bool isInside)
    {
        float cell = c[o], state;
        if constexpr (kCell == kRnn) {
            state = function(0, in[0] + ofH[0]);
        } else if constexpr (kCell == kLstm) {
            float const input = function(0, in[0] + ofH[0] + peephole(0, o, cell));
            float forget = 1.0f - input;
            if constexpr (!kInputForget)
                forget = function(0, in[2] + ofH[2] + peephole(2, o, cell));
            cell = forget * cell + input * function(1, in[3] + ofH[3]);
            state = function(0, in[1] + ofH[1] + peephole(1, o, cell)) * functionOf(d, 2, cell);
        } else {
            float const z = function(0, in[0] + ofH[0]), r = function(0, in[1] + ofH[1]);
            float const stateBias = biases()[kGates * kUnits + unitOf(o) - first];
            float const n = function(1, r * (ofH[2] + stateBias) + in[2]);
            state = n + z * (h[o] - n);
        }
        h[o] = isInside ? state : h[o];
        c[o] = isInside ? cell : c[o];
    }
    TW_INLINE void step(int i)
    {
        float in[kOwn][kGates], ofH[kOwn][kGates], sum[kTiles][kColumns][4] = {};
#pragma unroll
        for (int o = 0; o < kOwn; ++o)
#pragma unroll
            for (int g = 0; g < kGates; ++g)
                in[o][g] =
                    itemOf(o) < kItems ? halfToFloat(inputs[o][g]) + biases()[g * kUnits + unitOf(o) - first] : 0.0f;
        if (i + 1 < int(p.steps))
            loadInputs(i + 1);
        wait(i);
        multiply(sum, i);
        gather(ofH, sum, i);
#pragma unroll
        for (int o = 0; o < kOwn; o += kTogether)
            if (isLive(o))
#pragma unroll
                for (int slot = 0; slot < kTogether; ++slot)
                    advance(o + slot, in[o + slot], ofH[o + slot], i < lengths[o + slot]);
        if (i + 1 < int(p.steps))
            publish(i + 1);
#pragma unroll
        for (int o = 0; o < kOwn; ++o)
            if (has(o))
                put(p.y, timeOf(i, o) * int(p.yStep) + outputAt[o], i < lengths[o] ? h[o] : 0.0f);
    }
    // Numbers that nobody writes are 0.
    TW_INLINE void clear() const
    {
        for (int i = threadIdx.x; i < kBuffersEnd / 16; i += kBlockThreads)
            memory[i] = {};
        if (kInCluster && threadIdx.x == 0) {
#pragma unroll
            for (int i = 0; i < 2; ++i)
                barrierInit(barrier(i), 1);
            barrierInitFence();
#pragma unroll
            for (int i = 0; i < 2; ++i)
                barrierExpect(barrier(i), u32(kChunks * count * 16));
        }
    }
    TW_INLINE void run()
    {
        releaseDependents();
        if constexpr (!kKnownWeights)
            waitForPrevious();
        clear();
        loadBiases();
        loadWeights();
        if constexpr (kKnownWeights)
            waitForPrevious();
        loadStates();
        loadInputs(0);
        __syncthreads();
        if constexpr (kInCluster)
            clusterSync();
        if (p.steps > 0)
            publish(0);
        // In a cluster nothing waits for warps without units: they would miss phases of barriers.
        if (kInBlock || firstUnit() < kHidden)
            for (int i = 0; i < int(p.steps); ++i)
                step(i);
#pragma unroll
        for (int o = 0; o < kOwn; ++o) {
            if (!has(o))
                continue;
            put(p.h, state(o), h[o]);
            if constexpr (kCell == kLstm)
                put(p.c, state(o), c[o]);
        }
    }
};

TW_KERNEL __launch_bounds__(kBlockThreads, 1) recurrence_registers(const __grid_constant__ PersistentParams p)
{
    int const which = int(blockIdx.x) / p.blocks, d = p.firstDirection + which / p.groups, group = which % p.groups;
    int const sequence0 = group * p.groupSize, count = min(p.groupSize, int(p.batch) - sequence0);
    if (count <= 0) { // for all blocks of the group
        waitForPrevious();
        return;
    }
    int const warp = __shfl_sync(0xFFFFFFFF, int(threadIdx.x) / 32, 0);
    Steps steps{p,
                d,
                (int(blockIdx.x) - which * p.blocks) * kUnits,
                count,
                sequence0,
                static_cast<char*>(p.exchange) + (i64(d) * p.groups + group) * p.steps * p.groupSize * kRowBytes,
                sharedAddress(memory),
                int(threadIdx.x) % 32,
                warp / kPartWarps,
                kPartWarps > 1 ? warp % kPartWarps : 0};
    steps.run();
    if constexpr (kInCluster)
        clusterSync(); // until here others may write into this block's memory
}

} // namespace tw::ops::recurrence
