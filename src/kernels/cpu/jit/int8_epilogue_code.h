// SPDX-License-Identifier: Apache-2.0
// Emits an Int8Epilogue behind the sums of a tile. Includes Xbyak: for .cpp files only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/cpu/jit/byte_table_code.h"
#include "kernels/cpu/jit/int8_epilogue.h"
#include "kernels/cpu/jit/vector_code.h"
#include "kernels/cpu/jit/vector_math.h"

namespace tw::kernels::jit {

class Int8EpilogueCode
{
public:
    // Sums are in the registers row * vectors + v; at least four registers behind them are free. The Int8Output is
    // `offset` bytes behind `args`, which is neither of rax, rcx, rdx, r8, r9, r13 and r14: those are overwritten.
    Int8EpilogueCode(VectorCode& code, Int8Epilogue const& epilogue, int rows, int vectors, Xbyak::Reg64 const& args,
                     int offset)
        : c(code), s(epilogue), rows_(rows), vectors_(vectors), tiles_(rows * vectors), args_(args), offset_(offset)
    {}

    void emit()
    {
        if (s.masked)
            setMask();
        for (int i = 0; i < tiles_; ++i)
            c.vcvtdq2ps(c.vec(i), c.vec(i));
        scale();
        if (s.bias) {
            load(row_, offsetof(Int8Output, bias));
            for (int v = 0; v < vectors_; ++v) {
                readFloats(tiles_, v, row_ + v * c.vectorBytes());
                for (int row = 0; row < rows_; ++row)
                    c.vaddps(c.vec(acc(row, v)), c.vec(acc(row, v)), c.vec(tiles_));
            }
        }
        if (s.innerScale)
            roundSums();
        if (s.residual)
            addResidual();
        if (s.activation && !clipsBytes())
            activate(*s.activation);
        if (s.outputScale) {
            c.vbroadcastss(c.vec(tiles_), argument(offsetof(Int8Output, outputScale)));
            for (int i = 0; i < tiles_; ++i)
                c.vmulps(c.vec(i), c.vec(i), c.vec(tiles_));
        }
        if (s.store == Int8Type::kInt8)
            return storeBytes();
        walk(offsetof(Int8Output, c), offsetof(Int8Output, ldcBytes), [&](int row) {
            for (int v = 0; v < vectors_; ++v)
                s.store == Int8Type::kFloat ? storeFloats(v, acc(row, v)) : storeHalves(v, acc(row, v));
        });
    }

    // Fetches the tile's lines of C for writing.
    void prefetch()
    {
        int const bytes = vectors_ * c.width() * bytesOf(s.store);
        walk(offsetof(Int8Output, c), offsetof(Int8Output, ldcBytes), [&](int) {
            for (int at = 0; at < bytes; at += 64)
                c.prefetchw(c.ptr[row_ + at]);
        });
    }
    // After the function's return.
    void tables()
    {
        c.align(64);
        if (s.masked && !c.avx512()) {
            c.L(lanes_);
            for (int i = 0; i < 16; ++i)
                c.dd(i < 8 ? 0xffffffffu : 0u);
        }
        if (s.store != Int8Type::kInt8)
            return;
        c.L(byteOrder_); // the four columns of quarter q of vector v: from piece 4 q + v to piece quarters v + q
        int const quarters = c.width() / 4;
        for (int v = 0; v < 4; ++v)
            for (int q = 0; q < quarters; ++q)
                c.dd(uint32_t(4 * q + v));
    }

private:
    VectorCode& c;
    Int8Epilogue const& s;
    int const rows_, vectors_, tiles_;
    Xbyak::Reg64 const args_;
    int const offset_;
    Xbyak::Reg64 const row_ = Xbyak::util::r8, rowStride_ = Xbyak::util::r9, mask_ = Xbyak::util::r14,
                       scratch_ = Xbyak::util::rax, oldStack_ = Xbyak::util::r13, loop_ = Xbyak::util::rcx,
                       table_ = Xbyak::util::r13;
    // The last columns that AVX2 takes apart by bytes: below the stack pointer, where nobody else writes (the System V
    // convention keeps 128 bytes there for functions that call none).
    static constexpr int kBelowStack = -64;
    Xbyak::Label lanes_, byteOrder_;

    int acc(int row, int v) const { return row * vectors_ + v; }
    Xbyak::Address argument(size_t offset) const { return c.ptr[args_ + (offset_ + int(offset))]; }
    void load(Xbyak::Reg64 const& r, size_t offset) { c.mov(r, argument(offset)); }
    bool isMasked(int v) const { return s.masked && v == vectors_ - 1; }

    // k1: lanes of the last vector; k2: bytes of a row of i8. AVX2: mask_ points to a vector of lanes.
    void setMask()
    {
        load(scratch_, offsetof(Int8Output, lastColumns));
        if (!c.avx512()) {
            c.lea(mask_, c.ptr[Xbyak::util::rip + lanes_ + 32]);
            c.neg(scratch_);
            c.lea(mask_, c.ptr[mask_ + scratch_ * 4]);
            return;
        }
        c.mov(c.rdx, -1);
        c.bzhi(c.rcx, c.rdx, scratch_);
        c.kmovw(c.k1, c.ecx);
        c.add(scratch_, (vectors_ - 1) * c.width());
        c.bzhi(c.rcx, c.rdx, scratch_);
        c.kmovq(c.k2, c.rcx);
    }

    void scale()
    {
        load(row_, offsetof(Int8Output, scale));
        for (int v = 0; v < vectors_; ++v) {
            if (!s.oneScale)
                readFloats(tiles_, v, row_ + v * c.vectorBytes());
            else if (v == 0)
                c.vbroadcastss(c.vec(tiles_), c.ptr[row_]);
            for (int row = 0; row < rows_; ++row)
                c.vmulps(c.vec(acc(row, v)), c.vec(acc(row, v)), c.vec(tiles_));
        }
    }

    void roundSums()
    {
        int const least = tiles_, most = tiles_ + 1, temp = tiles_ + 2, factor = tiles_ + 3;
        c.loadConstant(least, -128.f);
        c.loadConstant(most, 127.f);
        c.vbroadcastss(c.vec(factor), argument(offsetof(Int8Output, innerScale)));
        for (int i = 0; i < tiles_; ++i) {
            emitRoundToByte(c, i, least, most, temp);
            c.vmulps(c.vec(i), c.vec(i), c.vec(factor));
        }
    }

    void addResidual()
    {
        int const value = tiles_, factor = tiles_ + 1;
        bool const bytes = s.residual == Int8Type::kInt8;
        if (bytes)
            c.vbroadcastss(c.vec(factor), argument(offsetof(Int8Output, residualScale)));
        walk(offsetof(Int8Output, residual), offsetof(Int8Output, ldrBytes), [&](int row) {
            for (int v = 0; v < vectors_; ++v) {
                Xbyak::RegExp const at = row_ + v * c.width() * bytesOf(*s.residual);
                if (s.residual == Int8Type::kFloat) {
                    readFloats(value, v, at);
                } else {
                    bool const apart = isMasked(v) && !c.avx512();
                    Xbyak::Address const from = apart ? c.ptr[c.rsp + kBelowStack] : c.ptr[at];
                    Vec const to = isMasked(v) && c.avx512() ? c.vec(value) | c.k1 | Xbyak::util::T_z : c.vec(value);
                    if (apart)
                        copyBytes(c.rsp + kBelowStack, at, 0, bytesOf(*s.residual));
                    bytes ? c.vpmovsxbd(to, from) : c.vcvtph2ps(to, from);
                }
                if (bytes) {
                    c.vcvtdq2ps(c.vec(value), c.vec(value));
                    c.vmulps(c.vec(value), c.vec(value), c.vec(factor));
                }
                c.vaddps(c.vec(acc(row, v)), c.vec(acc(row, v)), c.vec(value));
            }
        });
    }

    // Short functions are emitted once per register, the others run in a loop.
    void activate(Activation const& a)
    {
        bool const clip = a.kind == ActivationKind::kClip;
        if (a.kind == ActivationKind::kRelu || clip) { // constants loaded once; NaN goes through
            c.loadConstant(tiles_, clip ? a.alpha : 0);
            if (clip)
                c.loadConstant(tiles_ + 1, a.beta);
            for (int i = 0; i < tiles_; ++i) {
                if (clip)
                    c.vminps(c.vec(i), c.vec(tiles_ + 1), c.vec(i));
                c.vmaxps(c.vec(i), c.vec(tiles_), c.vec(i));
            }
        } else if (isShort(a.kind)) {
            for (int i = 0; i < tiles_; ++i)
                emitActivation(c, a, i, tiles_);
        } else {
            emitActivationLoop(c, a, tiles_, tiles_, oldStack_, scratch_, loop_);
        }
    }

    // Runs f(row) with row_ at each row of a matrix.
    template <class F>
    void walk(size_t pointerOffset, size_t strideOffset, F const& f)
    {
        load(row_, pointerOffset);
        load(rowStride_, strideOffset);
        for (int row = 0; row < rows_; ++row) {
            f(row);
            if (row + 1 < rows_)
                c.add(row_, rowStride_);
        }
    }

    // The columns that do not exist become zero.
    void readFloats(int to, int v, Xbyak::RegExp const& from)
    {
        if (!isMasked(v)) {
            c.vmovups(c.vec(to), c.ptr[from]);
        } else if (c.avx512()) {
            c.vmovups(c.vec(to) | c.k1 | Xbyak::util::T_z, c.ptr[from]);
        } else {
            c.vmovups(c.vec(to), c.ptr[mask_]);
            c.vmaskmovps(c.vec(to), c.vec(to), c.ptr[from]);
        }
    }

    void storeFloats(int v, int from)
    {
        Xbyak::Address const to = c.ptr[row_ + v * c.vectorBytes()];
        if (!isMasked(v)) {
            c.vmovups(to, c.vec(from));
        } else if (c.avx512()) {
            c.vmovups(to | c.k1, c.vec(from));
        } else {
            c.vmovups(c.vec(tiles_), c.ptr[mask_]);
            c.vmaskmovps(to, c.vec(tiles_), c.vec(from));
        }
    }

    void storeHalves(int v, int from)
    {
        constexpr uint8_t kHalfToEven = 0;
        Xbyak::RegExp const to = row_ + v * c.width() * 2;
        if (!isMasked(v)) {
            c.vcvtps2ph(c.ptr[to], c.vec(from), kHalfToEven);
        } else if (c.avx512()) {
            c.vcvtps2ph(c.ptr[to] | c.k1, c.vec(from), kHalfToEven);
        } else {
            c.vcvtps2ph(c.ptr[c.rsp + kBelowStack], c.vec(from), kHalfToEven);
            copyBytes(to, c.rsp + kBelowStack, 0, 2);
        }
    }

    // AVX2's last columns of types that it has no masks for: (full + lastColumns) * bytesEach bytes.
    void copyBytes(Xbyak::RegExp const& to, Xbyak::RegExp const& from, int full, int bytesEach)
    {
        Xbyak::Label again;
        load(loop_, offsetof(Int8Output, lastColumns));
        c.lea(loop_, c.ptr[loop_ * bytesEach + full * bytesEach]);
        c.L(again);
        c.mov(c.al, c.byte[from + loop_ - 1]);
        c.mov(c.byte[to + loop_ - 1], c.al);
        c.dec(loop_);
        c.jnz(again, c.T_NEAR);
    }

    // Bounds are held against bytes where numbers are certain: rounding and clamping keep their order.
    bool clipsBytes() const
    {
        return s.bounded && s.store == Int8Type::kInt8 && !s.outputScale && !s.table && s.activation &&
               (s.activation->kind == ActivationKind::kRelu || s.activation->kind == ActivationKind::kClip);
    }
    // Every byte of register `to` is what v is as i8.
    void loadBytes(int to, float v)
    {
        c.mov(scratch_.cvt32(), 0x01010101u * uint8_t(int8_t(std::clamp(std::nearbyint(v), -128.f, 127.f))));
        c.vmovd(Xbyak::Xmm(to), scratch_.cvt32());
        c.vpbroadcastd(c.vec(to), Xbyak::Xmm(to));
    }

    // Floats to bytes: the smaller of t and 127, as numbers beyond 2^31 would become INT_MIN; to integers, half to even;
    // saturating packs, which keep to quarters of 16 bytes; then the pieces of four columns into their order.
    void storeBytes()
    {
        int const most = tiles_, order = tiles_ + 1, temp = tiles_ + 2, largest = tiles_ + 3;
        if (clipsBytes()) {
            bool const clip = s.activation->kind == ActivationKind::kClip;
            loadBytes(most, clip ? s.activation->alpha : 0);
            if (clip)
                loadBytes(largest, s.activation->beta);
        } else {
            c.loadConstant(most, 127.f);
        }
        c.vmovups(c.vec(order), c.ptr[Xbyak::util::rip + byteOrder_]);
        if (s.table)
            load(table_, offsetof(Int8Output, table));
        walk(offsetof(Int8Output, c), offsetof(Int8Output, ldcBytes), [&](int row) {
            auto x = [&](int v) { return c.vec(acc(row, std::min(v, vectors_ - 1))); };
            for (int v = 0; v < vectors_; ++v) {
                if (s.bounded) {
                    c.vcvtps2dq(x(v), x(v));
                } else if (c.avx512()) {
                    c.vcmpps(c.k3, x(v), x(v), 7); // ordered: not NaN
                    c.vminps(x(v), x(v), c.vec(most));
                    c.vcvtps2dq(x(v) | c.k3 | Xbyak::util::T_z, x(v));
                } else {
                    c.vcmpps(c.vec(temp), x(v), x(v), 7);
                    c.vminps(x(v), x(v), c.vec(most));
                    c.vandps(x(v), x(v), c.vec(temp));
                    c.vcvtps2dq(x(v), x(v));
                }
            }
            c.vpackssdw(x(0), x(0), x(1));
            if (vectors_ > 2)
                c.vpackssdw(x(2), x(2), x(3));
            c.vpacksswb(x(0), x(0), vectors_ > 2 ? x(2) : x(0));
            int const y = acc(row, 0);
            c.avx512() ? c.vpermd(Xbyak::Zmm(y), Xbyak::Zmm(order), Xbyak::Zmm(y))
                       : c.vpermd(Xbyak::Ymm(y), Xbyak::Ymm(order), Xbyak::Ymm(y));
            if (clipsBytes()) {
                if (s.activation->kind == ActivationKind::kClip)
                    c.vpminsb(c.vec(y), c.vec(y), c.vec(largest));
                c.vpmaxsb(c.vec(y), c.vec(y), c.vec(most));
            }
            if (s.table == ByteTable::kPermutes)
                emitByteTable(c, y, temp, table_);
            storeRow(y);
            if (s.table == ByteTable::kBytes)
                lookUpRow();
        });
    }

    // What storeRow() has stored.
    void lookUpRow()
    {
        Xbyak::Label again;
        if (s.masked) {
            load(loop_, offsetof(Int8Output, lastColumns));
            c.add(loop_, (vectors_ - 1) * c.width());
        } else {
            c.mov(loop_, uint64_t(vectors_ * c.width()));
        }
        c.L(again);
        emitByteTable(c, row_ + loop_ - 1, table_);
        c.dec(loop_);
        c.jnz(again, c.T_NEAR);
    }

    void storeRow(int from)
    {
        using namespace Xbyak;
        if (s.masked && c.avx512()) {
            c.vmovdqu8(c.ptr[row_] | c.k2, c.vec(from));
            return;
        }
        if (s.masked) {
            c.vmovups(c.ptr[c.rsp + kBelowStack], c.vec(from));
            copyBytes(row_, c.rsp + kBelowStack, (vectors_ - 1) * c.width(), 1);
            return;
        }
        int const bytes = vectors_ * c.width();
        if (bytes == 64)
            c.vmovups(c.ptr[row_], Zmm(from));
        else if (bytes >= 32)
            c.vmovups(c.ptr[row_], Ymm(from));
        else if (bytes >= 16)
            c.vmovups(c.ptr[row_], Xmm(from));
        else
            c.vmovq(c.ptr[row_], Xmm(from));
        if (bytes == 48) {
            c.vextracti32x4(c.ptr[row_ + 32], Zmm(from), 2);
        } else if (bytes == 24) {
            c.vextracti128(Xmm(tiles_ + 2), Ymm(from), 1);
            c.vmovq(c.ptr[row_ + 16], Xmm(tiles_ + 2));
        }
    }
};

} // namespace tw::kernels::jit
