// SPDX-License-Identifier: Apache-2.0
// All steps in one launch. A block has kUnits hidden units of a direction, and their recurrent weights in shared memory;
// the sequences are cut into groups with blocks of their own. States go from block to block of a direction and group
// behind each step: through memory, with a barrier on a counter, or (kCluster) from shared memory to shared memory, with
// the barrier of a cluster.
//
// Products of weights (a) and states (b) by mma.sync: a warp has every kSummed-th part of k, 64 bytes of a row, of every
// kRowWarps-th tile of rows. A lane takes 16 bytes of a row at once: words 2 j and 2 j + 1 are its numbers in product j.
// So k stands in another order than in memory, the same one in both factors.
//   type Element; int kCell, kHidden, kUnits (a power of 2), kColumns (8 sequences each, at once); bool kReverse (of
//   direction 0), kLinear, kInputForget, kCluster; float kClip (0: none)
//   float functionOf(int direction, int i, float x)
#pragma once

#include "kernels/cuda/common/clusters.cuh"
#include "kernels/cuda/common/factors.cuh"
#include "kernels/cuda/common/matrix.cuh"
#include "ops/recurrence/recurrence_elements.cuh"
#include "ops/recurrence/recurrence_params.h"

namespace tw::ops::recurrence {

constexpr int kBlockThreads = 256, kWarps = kBlockThreads / 32, kRowsOfBlock = kGates * kUnits;
constexpr bool kIsHalf = sizeof(Element) == 2, kResetsState = kCell == 2 && !kLinear;
constexpr int kVector = 16 / int(sizeof(Element)), kPart = 4 * kVector; // elements of a lane's load, of a part of k
constexpr int kParts = (kHidden + kPart - 1) / kPart, kPadded = kParts * kPart;
constexpr int kStride = kParts * 64 + (kParts % 2 ? 0 : 64); // bytes; 64 more than whole rows of banks
constexpr int kSequences = kColumns * 8, kSumStride = kSequences + 1;
constexpr int kLeastTiles = ((kResetsState ? 1 : kGates) * kUnits + 15) / 16;
// States in shared memory may be read by several warps.
constexpr int kRowWarps = !kCluster || kLeastTiles < 2 ? 1 : kLeastTiles < 4 ? 2 : kLeastTiles < 8 ? 4 : 8;
constexpr int kPartWarps = kWarps / kRowWarps;                                    // that share k
constexpr int kSummed = kParts < kPartWarps ? kParts : kPartWarps;                // those with sums
constexpr int kItems = (kUnits * kSequences + kBlockThreads - 1) / kBlockThreads; // of a thread
constexpr int kPartsOfWarp = (kParts + kPartWarps - 1) / kPartWarps, kMostAhead = kColumns == 1 ? 8 : 4;
constexpr int kAhead = kPartsOfWarp < kMostAhead ? kPartsOfWarp : kMostAhead; // parts whose states are on their way
constexpr int kBuffers = kResetsState ? 3 : 2;
constexpr int kStateStride = kCluster ? kStride : kPadded * int(sizeof(Element)); // bytes from sequence to sequence

extern __shared__ unit16 memory[];

// Past the L1 cache, which does not see what other blocks write.
TW_INLINE Unit loadState(char const* p)
{
    if constexpr (kCluster)
        return loadSharedUnit(sharedAddress(p));
    Unit u;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(u.v[0]), "=r"(u.v[1]), "=r"(u.v[2]), "=r"(u.v[3])
                 : "l"(p)
                 : "memory");
    return u;
}
// d += a b of one part of k; a0 and a1: of rows lane / 4 and eight further.
TW_INLINE void multiplyPart(float (&d)[4], Unit const& a0, Unit const& a1, Unit const& b)
{
    if constexpr (kIsHalf) {
#pragma unroll
        for (int j = 0; j < 2; ++j)
            mma(d, {a0.v[2 * j], a1.v[2 * j], a0.v[2 * j + 1], a1.v[2 * j + 1]}, b.v[2 * j], b.v[2 * j + 1]);
    } else { // sums of their own: tensor cores cut off what sums lose
        float sum[4] = {};
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            Factors<4> a;
            Factors<2> h;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                a.set(2 * i, __uint_as_float(a0.v[2 * j + i]));
                a.set(2 * i + 1, __uint_as_float(a1.v[2 * j + i]));
                h.set(i, __uint_as_float(b.v[2 * j + i]));
            }
            multiply(sum, a, h);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
            d[i] += sum[i];
    }
}

struct Block
{
    PersistentParams const& p;
    int d, first, batch; // first: unit; batch: sequences of the group
    int sequence0;       // of the group
    u32 weights;         // shared: [kRowsOfBlock] of kStride bytes, row gate * kUnits + unit
    float* sums;         // shared: [kSummed][kRowsOfBlock][kSumStride]
    float* h;            // shared: [batch][kUnits]
    float* c;            // shared: likewise, of LSTM; GRU's update gates
    int* lengths;        // shared: [batch]
    char* exchange;      // of this direction and group; kCluster: shared, alike in all blocks
    u32* counter;
    u32 target;
    float bias[kGates], stateBias; // of this thread's unit; stateBias: what GRU adds before the reset gate acts

    TW_INLINE int unitOfItem() const { return int(threadIdx.x) % kUnits; } // kBlockThreads are whole rows of units
    TW_INLINE int sequenceOfItem(int item) const { return (int(threadIdx.x) + item * kBlockThreads) / kUnits; }
    TW_INLINE i64 unit() const { return first + unitOfItem(); }
    TW_INLINE bool has(int item, int n0) const
    {
        int const n = sequenceOfItem(item);
        return n < kSequences && n0 + n < batch && unit() < kHidden;
    }
    TW_INLINE i64 state(i64 n, i64 j) const { return d * p.stateDir + (sequence0 + n) * p.stateRow + j; }
    TW_INLINE char* buffer(int i) const { return exchange + i64(i) * p.groupSize * kStateStride; }
    TW_INLINE Element& stateAt(char* in, int n, int unit) const
    {
        return reinterpret_cast<Element*>(in + i64(n) * kStateStride)[unit];
    }
    TW_INLINE bool isReverse() const { return d == 1 || kReverse; }
    TW_INLINE float function(int i, float x) const { return functionOf(d, i, clipped(x)); }
    TW_INLINE float peephole(int which, float cell) const
    {
        return p.peepholes ? at(p.peepholes, (i64(d) * 3 + which) * kHidden + unit()) * cell : 0.0f;
    }

    // What this block has put into a buffer goes to the cluster's other blocks: rows of kUnits, in the largest words.
    TW_INLINE void send(char* from) const
    {
        constexpr int kRowBytes = kUnits * int(sizeof(Element));
        constexpr int kWord = kRowBytes % 16 == 0 ? 16 : kRowBytes % 8 == 0 ? 8 : kRowBytes % 4 == 0 ? 4 : 2;
        constexpr int kWords = kRowBytes / kWord;
        int const words = batch * kWords, others = p.blocks - 1, own = int(clusterRank());
        for (int i = threadIdx.x; i < words * others; i += kBlockThreads) {
            int const word = i % words, other = i / words, n = word / kWords;
            if (first + word % kWords * (kWord / int(sizeof(Element))) >= kPadded)
                continue;
            u32 const at =
                sharedAddress(from) + n * kStateStride + first * int(sizeof(Element)) + word % kWords * kWord;
            u32 const to = addressAt(at, u32(other + (other >= own)));
            if constexpr (kWord == 16) {
                Unit const u = loadSharedUnit(at);
                asm volatile("st.shared::cluster.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(u.v[0]), "r"(u.v[1]),
                             "r"(u.v[2]), "r"(u.v[3])
                             : "memory");
            } else if constexpr (kWord == 8) {
                float a, b;
                loadShared(at, a, b);
                storeCluster(to, a, b);
            } else if constexpr (kWord == 4) {
                asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(to), "r"(loadShared(at)) : "memory");
            } else {
                u16 v;
                asm volatile("ld.shared.b16 %0, [%1];" : "=h"(v) : "r"(at) : "memory");
                asm volatile("st.shared::cluster.b16 [%0], %1;" ::"r"(to), "h"(v) : "memory");
            }
        }
    }
    // The states of buffer `i` are there.
    TW_INLINE void arrive(int i) const
    {
        __syncthreads();
        if constexpr (kCluster) {
            send(buffer(i));
            clusterArrive();
            return;
        }
        if (threadIdx.x == 0) {
            __threadfence();
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
        }
    }
    // For the arrivals of all blocks since the last wait.
    TW_INLINE void wait()
    {
        if constexpr (kCluster) {
            clusterWait();
            return;
        }
        target += u32(p.blocks);
        if (threadIdx.x == 0) {
            u32 seen;
            do
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
            while (i32(seen - target) < 0);
            __threadfence();
        }
        __syncthreads();
    }

    TW_INLINE unit16 weightsAt(i64 row, int k) const
    {
        Element const* const from = static_cast<Element const*>(p.r) + row * kHidden + k;
        union {
            unit16 all;
            Element each[kVector];
        } v;
        if constexpr (kHidden % kVector == 0) {
            v.all = *reinterpret_cast<unit16 const*>(from);
        } else {
#pragma unroll
            for (int e = 0; e < kVector; ++e)
                v.each[e] = k + e < kHidden ? from[e] : store<Element>(0.0f);
        }
        return v.all;
    }
    TW_INLINE void loadWeights() const
    {
        char* const to = reinterpret_cast<char*>(memory);
#pragma unroll 4
        for (int i = threadIdx.x; i < kRowsOfBlock * kParts * 4; i += kBlockThreads) {
            int const row = i / (kParts * 4), at = i % (kParts * 4), unit = first + row % kUnits;
            unit16 v = {};
            if (unit < kHidden && at * kVector < kHidden)
                v = weightsAt((i64(d) * kGates + row / kUnits) * kHidden + unit, at * kVector);
            *reinterpret_cast<unit16*>(to + row * kStride + at * 16) = v;
        }
    }
    TW_INLINE void loadBiases()
    {
        bool const given = p.bias && unit() < kHidden;
#pragma unroll
        for (int g = 0; g < kGates; ++g) {
            i64 const row = (i64(d) * 2 * kGates + g) * kHidden + unit();
            float const ofState = given ? at(p.bias, row + i64(kGates) * kHidden) : 0.0f;
            bool const apart = kCell == 2 && kLinear && g == 2;
            bias[g] = (given ? at(p.bias, row) : 0.0f) + (apart ? 0.0f : ofState);
            if (g == kGates - 1)
                stateBias = apart ? ofState : 0.0f;
        }
    }
    TW_INLINE void loadStates() const
    {
        for (int n = threadIdx.x; n < batch; n += kBlockThreads) {
            i64 const l = p.lengths ? p.lengths[sequence0 + n] : p.steps;
            lengths[n] = int(l < 0 ? 0 : l < p.steps ? l : p.steps);
        }
        for (int i = threadIdx.x; i < batch * kUnits; i += kBlockThreads) {
            int const n = i / kUnits, j = first + i % kUnits;
            bool const inside = j < kHidden;
            h[i] = inside && p.h0 ? at(p.h0, state(n, j)) : 0.0f;
            c[i] = inside && p.c0 ? at(p.c0, state(n, j)) : 0.0f;
            if (inside)
                stateAt(buffer(0), n, j) = store<Element>(h[i]);
        }
    }
    // Numbers that no block writes; and no block writes into another one's memory before that is there.
    TW_INLINE void clearStates() const
    {
        if constexpr (kCluster) {
            for (int i = threadIdx.x; i < kBuffers * p.groupSize * (kStateStride / 16); i += kBlockThreads)
                reinterpret_cast<unit16*>(exchange)[i] = {};
            __syncthreads();
            clusterSync();
        }
    }

    // Sums of rows FIRST to FIRST + COUNT - 1 for sequences from n0 on.
    template <int FIRST, int COUNT>
    TW_INLINE void sumRows(char const* from, int n0) const
    {
        constexpr int kAllTiles = (COUNT + 15) / 16, kTiles = (kAllTiles + kRowWarps - 1) / kRowWarps;
        int const warp = threadIdx.x / 32 / kRowWarps, tile0 = threadIdx.x / 32 % kRowWarps;
        int const row = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
        float sum[kTiles][kColumns][4] = {};
        u32 a[kTiles][2];
#pragma unroll
        for (int i = 0; i < kTiles; ++i)
#pragma unroll
            for (int s = 0; s < 2; ++s) // rows that are not there repeat the last one
                a[i][s] =
                    weights + (FIRST + min((tile0 + i * kRowWarps) * 16 + s * 8 + row, COUNT - 1)) * kStride + q * 16;
        for (int part0 = warp; part0 < kParts; part0 += kPartWarps * kAhead) {
            Unit b[kAhead][kColumns];
#pragma unroll
            for (int i = 0; i < kAhead; ++i)
#pragma unroll
                for (int j = 0; j < kColumns; ++j) {
                    int const part = part0 + i * kPartWarps, n = n0 + j * 8 + row;
                    b[i][j] = {};
                    if (part < kParts && n < batch)
                        b[i][j] = loadState(from + i64(n) * kStateStride + part * 64 + q * 16);
                }
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                int const part = part0 + i * kPartWarps;
                if (part >= kParts)
                    break;
#pragma unroll
                for (int t = 0; t < kTiles; ++t) {
                    Unit const a0 = loadSharedUnit(a[t][0] + part * 64), a1 = loadSharedUnit(a[t][1] + part * 64);
#pragma unroll
                    for (int j = 0; j < kColumns; ++j)
                        multiplyPart(sum[t][j], a0, a1, b[i][j]);
                }
            }
        }
        if (warp < kSummed) {
            float* const to = sums + (warp * kRowsOfBlock + FIRST) * kSumStride;
#pragma unroll
            for (int t = 0; t < kTiles; ++t)
#pragma unroll
                for (int j = 0; j < kColumns; ++j)
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        int const r = (tile0 + t * kRowWarps) * 16 + e / 2 * 8 + row;
                        if (r < COUNT)
                            to[r * kSumStride + j * 8 + q * 2 + e % 2] = sum[t][j][e];
                    }
        }
        __syncthreads();
    }
    TW_INLINE float ofH(int item, int gate) const
    {
        float const* const from = sums + (gate * kUnits + unitOfItem()) * kSumStride + sequenceOfItem(item);
        float sum = 0;
#pragma unroll
        for (int w = 0; w < kSummed; ++w)
            sum += from[w * (kRowsOfBlock * kSumStride)];
        return sum;
    }

    // Of step i of a sequence; past its end: the step itself.
    TW_INLINE i64 timeOf(i64 i, int n) const
    {
        int const length = lengths[n];
        return isReverse() && i < length ? length - 1 - i : i;
    }
    // What all gates get of x; nothing past the end.
    TW_INLINE void loadInputs(float (&in)[kItems][kGates], i64 i, int n0) const
    {
#pragma unroll
        for (int item = 0; item < kItems; ++item) {
            int const n = n0 + sequenceOfItem(item);
            bool const given = has(item, n0) && i < lengths[n];
            i64 const from =
                given ? timeOf(i, n) * p.productStep + (sequence0 + n) * p.productRow + d * p.productDir + unit()
                      : i64(0);
#pragma unroll
            for (int g = 0; g < kGates; ++g)
                in[item][g] = given ? at(p.products, from + g * p.productGate) + bias[g] : 0.0f;
        }
    }

    TW_INLINE float lstm(float const (&in)[kGates], int item, int place) const
    {
        float const cell = c[place];
        float const input = function(0, in[0] + ofH(item, 0) + peephole(0, cell));
        float forget = 1.0f - input;
        if constexpr (!kInputForget)
            forget = function(0, in[2] + ofH(item, 2) + peephole(2, cell));
        float const next = forget * cell + input * function(1, in[3] + ofH(item, 3));
        float const output = function(0, in[1] + ofH(item, 1) + peephole(1, next));
        c[place] = next;
        return output * functionOf(d, 2, next);
    }
    TW_INLINE float gru(float const (&in)[kGates], int item, int place) const
    {
        float z, x;
        if constexpr (kLinear) {
            z = function(0, in[0] + ofH(item, 0));
            x = function(0, in[1] + ofH(item, 1)) * (ofH(item, 2) + stateBias) + in[2];
        } else {
            z = c[place];
            x = in[2] + ofH(item, 2);
        }
        return (1.0f - z) * function(1, x) + z * h[place];
    }
    TW_INLINE float next(float const (&in)[kGates], int item, int place) const
    {
        if constexpr (kCell == kLstm)
            return lstm(in, item, place);
        else if constexpr (kCell == kRnn)
            return function(0, in[0] + ofH(item, 0));
        else
            return gru(in, item, place);
    }
    // New states, after their sums.
    TW_INLINE void finish(float const (&in)[kItems][kGates], i64 i, int n0) const
    {
        char* const to = buffer(int(~i & 1));
#pragma unroll
        for (int item = 0; item < kItems; ++item) {
            if (!has(item, n0))
                continue;
            int const n = n0 + sequenceOfItem(item), place = n * kUnits + unitOfItem();
            if (i < lengths[n])
                h[place] = next(in[item], item, place);
            stateAt(to, n, int(unit())) = store<Element>(h[place]);
        }
        __syncthreads();
    }
    // Of step i, when its states are on their way: an arrival waits for all stores before it.
    TW_INLINE void putOutputs(i64 i) const
    {
        for (int n0 = 0; n0 < batch; n0 += kSequences)
#pragma unroll
            for (int item = 0; item < kItems; ++item) {
                int const n = n0 + sequenceOfItem(item);
                if (has(item, n0))
                    put(p.y, timeOf(i, n) * p.yStep + (sequence0 + n) * p.yRow + i64(d) * kHidden + unit(),
                        i < lengths[n] ? h[n * kUnits + unitOfItem()] : 0.0f);
            }
    }
    // Update gates, and states as the reset gate leaves them.
    TW_INLINE void reset(float const (&in)[kItems][kGates], int n0) const
    {
        char* const to = buffer(2);
#pragma unroll
        for (int item = 0; item < kItems; ++item) {
            if (!has(item, n0))
                continue;
            int const n = n0 + sequenceOfItem(item), place = n * kUnits + unitOfItem();
            c[place] = function(0, in[item][0] + ofH(item, 0));
            float const r = function(0, in[item][1] + ofH(item, 1));
            stateAt(to, n, int(unit())) = store<Element>(r * h[place]);
        }
        __syncthreads();
    }
    // `in`: of the first sequences.
    TW_INLINE void step(float (&in)[kItems][kGates], i64 i)
    {
        char const* from = buffer(int(i & 1));
        if constexpr (kResetsState) {
            for (int n0 = 0; n0 < batch; n0 += kSequences) {
                if (n0)
                    loadInputs(in, i, n0);
                sumRows<0, 2 * kUnits>(from, n0);
                reset(in, n0);
            }
            from = buffer(2);
            arrive(2);
            loadInputs(in, i, 0);
            wait();
        }
        for (int n0 = 0; n0 < batch; n0 += kSequences) {
            if (n0)
                loadInputs(in, i, n0);
            if constexpr (kResetsState)
                sumRows<2 * kUnits, kUnits>(from, n0);
            else
                sumRows<0, kRowsOfBlock>(from, n0);
            finish(in, i, n0);
        }
    }
    TW_INLINE void run()
    {
        clearStates();
        loadStates();
        loadBiases();
        loadWeights();
        arrive(0);
        float in[kItems][kGates];
        if (p.steps > 0)
            loadInputs(in, 0, 0);
        wait();
        for (i64 i = 0; i < p.steps; ++i) {
            step(in, i);
            bool const isLast = i + 1 == p.steps;
            if (!isLast) {
                arrive(int(~i & 1));
                loadInputs(in, i + 1, 0);
            }
            putOutputs(i);
            if (!isLast)
                wait();
        }
        for (int i = threadIdx.x; i < batch * kUnits; i += kBlockThreads) {
            int const n = i / kUnits, j = first + i % kUnits;
            if (j >= kHidden)
                continue;
            put(p.h, state(n, j), h[i]);
            if constexpr (kCell == kLstm)
                put(p.c, state(n, j), c[i]);
        }
    }
};

TW_KERNEL __launch_bounds__(256, 1) recurrence_persistent(const __grid_constant__ PersistentParams p)
{
    int const which = int(blockIdx.x) / p.blocks, d = p.firstDirection + which / p.groups, group = which % p.groups;
    int const sequence0 = group * p.groupSize, batch = max(0, min(p.groupSize, int(p.batch) - sequence0));
    char* const base = reinterpret_cast<char*>(memory);
    float* const sums = reinterpret_cast<float*>(base + kRowsOfBlock * kStride);
    float* const h = sums + kSummed * kRowsOfBlock * kSumStride;
    float* const c = h + p.groupSize * kUnits;
    int* const lengths = reinterpret_cast<int*>(c + p.groupSize * kUnits);
    i64 const barrier = i64(d) * p.groups + group;
    // Whole 16 bytes on both sides.
    char* const own = base + (reinterpret_cast<char*>(lengths + p.groupSize) - base + 15) / 16 * 16;
    char* const shared = static_cast<char*>(p.exchange) + barrier * (kBuffers * p.groupSize * i64(kStateStride));
    Block block{p,
                d,
                (int(blockIdx.x) - which * p.blocks) * kUnits,
                batch,
                sequence0,
                sharedAddress(memory),
                sums,
                h,
                c,
                lengths,
                kCluster ? own : shared,
                p.counters + barrier * kCounterWords,
                0};
    block.run();
    if constexpr (kCluster)
        clusterSync(); // until here others may write into this block's memory
}

} // namespace tw::ops::recurrence
