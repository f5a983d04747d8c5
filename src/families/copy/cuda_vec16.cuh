// SPDX-License-Identifier: Apache-2.0
// copyVec16<S>(source, y, count, each): elements of S bytes; a block writes each * 256 words, each
// <= 4. y is aligned to 16 bytes, `count` elements long, and consists of segments, numbered along it. A source has
//     Spot               where a position of y lies: its segment and its place in that
//     kClips             whether pieces may have a border
//     spot(i)            of element i of y; memory that it reads is not looked at
//     next(spot)         the beginning of the next segment
//     piece(spot)        a Piece: where it comes from
//     fill()             a word of border
//     segment(i)         number of the segment of element i
//     end(segment)       the element of y after it
#pragma once

#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops {

typedef Pack<u32, 4> Whole;
// From element `at` of x, which is aligned to 16 bytes, on for `left` elements; two words from element e on may be read
// where e - begin < span. Elements [low, high) from here on come from x, the others are border.
struct Piece
{
    void const* x;
    off at, begin;
    idx span, left;
    off low, high;
};
// 16 bytes from `shift` elements of S bytes on.
template <int S>
TW_INLINE Whole joined(Whole const& a, Whole const& b, int shift)
{
    u32 const w[8] = {a.v[0], a.v[1], a.v[2], a.v[3], b.v[0], b.v[1], b.v[2], b.v[3]};
    int const bytes = shift * S;
    u32 half[6], word[5];
#pragma unroll
    for (int i = 0; i < 6; ++i)
        half[i] = bytes & 8 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; ++i)
        word[i] = bytes & 4 ? half[i + 1] : half[i];
    Whole v;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        v.v[i] = S == 4 ? word[i] : __funnelshift_r(word[i], word[i + 1], (bytes & 3) * 8);
    return v;
}
template <int S>
TW_INLINE u32 elementAt(void const* x, off e)
{
    if constexpr (S == 4)
        return static_cast<u32 const*>(x)[e];
    else if constexpr (S == 2)
        return static_cast<unsigned short const*>(x)[e];
    else
        return static_cast<unsigned char const*>(x)[e];
}
template <int S>
TW_INLINE void storeElement(void* y, idx i, Whole const& v, int e)
{
    u32 const one = v.v[e * S / 4] >> e * S % 4 * 8;
    if constexpr (S == 4)
        static_cast<u32*>(y)[i] = one;
    else if constexpr (S == 2)
        static_cast<unsigned short*>(y)[i] = (unsigned short)one;
    else
        static_cast<unsigned char*>(y)[i] = (unsigned char)one;
}
// Elements [low, high) of a word, each in its place, the others anything.
struct Part
{
    Whole a, b;
    int shift, low, high;
};
// False: too near to an end of x to be read by words.
template <int S>
TW_INLINE bool open(Part& part, Piece const& p, off at, int low, int high)
{
    constexpr int kPack = 16 / S;
    part.low = low;
    part.high = high;
    part.shift = int(at) & (kPack - 1);
    if (low >= high)
        return true;
    off const first = at - part.shift;
    if (idx(first - p.begin) >= p.span)
        return false;
    Whole const* const x = reinterpret_cast<Whole const*>(static_cast<char const*>(p.x) + i64(first) * S);
    part.a = x[0];
    part.b = x[1];
    return true;
}
template <int S>
TW_INLINE void openElements(Part& part, Piece const& p, off at)
{
    part.a = part.b = Whole{};
    part.shift = 0;
#pragma unroll
    for (int e = 0; e < 16 / S; ++e)
        if (e >= part.low && e < part.high)
            part.a.v[e * S / 4] |= elementAt<S>(p.x, at + e) << e * S % 4 * 8;
}
// Bytes of all ones or zeros: what bit 7 of byte N of v is, for each N of `bytes`.
template <u32 kBytes>
TW_INLINE u32 repeated(u32 v)
{
    u32 r;
    asm("prmt.b32 %0, %1, %1, %2;" : "=r"(r) : "r"(v), "n"(kBytes | 0x8888));
    return r;
}
template <int S>
TW_INLINE void put(Whole& out, Part const& part)
{
    Whole const v = joined<S>(part.a, part.b, part.shift);
    u32 const bits = (1u << part.high) - (1u << part.low); // one for each element
    // Four bits to bit 7 of a byte each.
    auto spread = [&](int first) { return (bits >> first & 15) * 0x10204080u; };
    u32 mask[4];
    if constexpr (S == 1) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            mask[i] = repeated<0x3210>(spread(i * 4));
    } else {
        u32 const low = spread(0), high = S == 2 ? spread(4) : low;
        mask[0] = repeated < S == 2 ? 0x1100 : 0x0000 > (low);
        mask[1] = repeated < S == 2 ? 0x3322 : 0x1111 > (low);
        mask[2] = repeated < S == 2 ? 0x1100 : 0x2222 > (high);
        mask[3] = repeated < S == 2 ? 0x3322 : 0x3333 > (high);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        out.v[i] = (out.v[i] & ~mask[i]) | (v.v[i] & mask[i]);
}
TW_INLINE int within(off v, int most)
{
    return v < 0 ? 0 : v > most ? most : int(v);
}
// Any word, from as many segments as there are in it.
template <int S, class Source>
TW_INLINE void copyMixed(Source const& source, void* y, idx count, idx i)
{
    constexpr int kPack = 16 / S;
    int const all = count - i < kPack ? int(count - i) : kPack;
    Whole out = source.fill();
    typename Source::Spot spot = source.spot(i);
    for (int done = 0;;) {
        Part part[2]; // read together
#pragma unroll
        for (int q = 0; q < 2; ++q) {
            part[q].low = part[q].high = 0;
            if (done >= all)
                continue;
            Piece const p = source.piece(spot);
            int const n = p.left < idx(all - done) ? int(p.left) : all - done;
            int const low = Source::kClips ? within(p.low, n) : 0, high = Source::kClips ? within(p.high, n) : n;
            if (!open<S>(part[q], p, p.at - done, done + low, done + high))
                openElements<S>(part[q], p, p.at - done);
            done += n;
            if (done < all)
                spot = source.next(spot);
        }
#pragma unroll
        for (int q = 0; q < 2; ++q)
            if (part[q].low < part[q].high)
                put<S>(out, part[q]);
        if (done >= all)
            break;
    }
    if (all == kPack)
        *reinterpret_cast<Whole*>(static_cast<char*>(y) + u64(i) * S) = out;
    else
#pragma unroll
        for (int e = 0; e < kPack; ++e)
            if (e < all)
                storeElement<S>(y, i + e, out, e);
}
template <int S, class Source>
TW_INLINE void copyVec16(Source const& source, void* y, idx count, int each)
{
    constexpr int kPack = 16 / S, kEach = 4;
    idx const tile = idx(blockIdx.x) * idx(each) * (256 * kPack), first = tile + threadIdx.x * kPack;
    auto isThere = [&](int k) { return k < each && first + idx(k * 256 * kPack) + kPack <= count; };
    // Words of one segment.
    typename Source::Spot spot[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k)
        if (isThere(k))
            spot[k] = source.spot(first + idx(k * 256 * kPack));
    Part part[kEach];
    u32 ready = 0, late = 0;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        if (!isThere(k))
            continue;
        Piece const p = source.piece(spot[k]);
        if (p.left < kPack)
            continue;
        int const low = Source::kClips ? within(p.low, kPack) : 0,
                  high = Source::kClips ? within(p.high, kPack) : kPack;
        if (open<S>(part[k], p, p.at, low, high))
            ready |= 1u << k;
        else
            late |= 1u << k;
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        if (!(ready >> k & 1))
            continue;
        Whole out;
        if (Source::kClips && part[k].high - part[k].low < kPack) {
            out = source.fill();
            if (part[k].low < part[k].high)
                put<S>(out, part[k]);
        } else {
            out = joined<S>(part[k].a, part[k].b, part[k].shift);
        }
        *reinterpret_cast<Whole*>(static_cast<char*>(y) + u64(first + idx(k * 256 * kPack)) * S) = out;
    }
    // The others: those at an end of x, and those that a segment ends in, each by the first one that does.
    idx const behind = tile + idx(each) * (256 * kPack) < count ? tile + idx(each) * (256 * kPack) : count;
    idx const last = source.segment(behind - 1);
    idx at = source.segment(tile) + threadIdx.x;
    while (late != 0 || at <= last) {
        idx word = first;
        if (late != 0) {
            word += idx((late & 1 ? 0 : late & 2 ? 1 : late & 4 ? 2 : 3) * 256 * kPack);
            late &= late - 1;
        } else {
            idx const end = source.end(at);
            word = end / kPack * kPack;
            bool const isOwn = end != word && word < behind && (at == 0 || source.end(at - 1) <= word);
            at += 256;
            if (!isOwn)
                continue;
        }
        copyMixed<S>(source, y, count, word);
    }
}

} // namespace tw::ops
