// SPDX-License-Identifier: Apache-2.0
// Emits what stands behind the sums of a tile (gemm_kernel.h). Includes Xbyak: for .cpp files only.
#pragma once

#include <cstddef>

#include "kernels/cpu/jit/byte_code.h"
#include "kernels/cpu/jit/gemm_kernel.h"
#include "kernels/cpu/jit/pointer_walk.h"
#include "kernels/cpu/jit/vector_code.h"
#include "kernels/cpu/jit/vector_math.h"

namespace tw::kernels::jit {

class GemmEndCode : protected PointerWalk<GemmArgs>
{
protected:
    GemmKernelSpec const& s;
    int const tiles_, free_; // accumulators are the registers 0 .. tiles_ - 1: see acc()
    // After the products; mask_ before them, too.
    Xbyak::Reg64 const row_ = Xbyak::util::r8, rowStride_ = Xbyak::util::r9, mask_ = Xbyak::util::r14,
                       scratch_ = Xbyak::util::rax, oldStack_ = Xbyak::util::r13, table_ = Xbyak::util::r13;

    GemmEndCode(VectorCode& code, GemmKernelSpec const& spec)
        : PointerWalk(code), s(spec), tiles_(spec.rows * spec.vectors), free_(c.vectorCount() - tiles_)
    {}

    // Of a gated tile the gates come first.
    int acc(int row, int v) const
    {
        int const half = stored();
        return v < half ? row * half + v : (s.rows + row) * half + v - half;
    }
    int stored() const { return s.gated ? s.vectors / 2 : s.vectors; } // vectors of a row
    int activated() const { return s.gated ? tiles_ / 2 : tiles_; }    // accumulators
    bool isMasked(int v) const { return s.masked && v == stored() - 1; }

    // k1: lanes of the last vector; k2: bytes of a row of i8. AVX2: mask_ points to a vector of lanes. Overwrites rdx.
    void setMask()
    {
        if (!s.masked && !s.maskedB)
            return;
        load(scratch_, offsetof(GemmArgs, lastColumns));
        if (!c.avx512()) {
            c.lea(mask_, c.ptr[Xbyak::util::rip + maskTable_ + 32]);
            c.neg(scratch_);
            c.lea(mask_, c.ptr[mask_ + scratch_ * 4]);
            return;
        }
        c.mov(c.edx, -1);
        c.bzhi(c.edx, c.edx, c.eax);
        c.kmovw(c.k1, c.edx);
        if (!isQuantized(s.store.type))
            return;
        c.add(scratch_, (s.vectors - 1) * c.width());
        c.mov(c.rdx, -1);
        c.bzhi(c.rdx, c.rdx, scratch_);
        c.kmovq(c.k2, c.rdx);
    }

    // After the function's return.
    void tables()
    {
        if ((s.masked || s.maskedB) && !c.avx512()) {
            c.align(64);
            c.L(maskTable_);
            for (int i = 0; i < 16; ++i)
                c.dd(i < 8 ? 0xffffffffu : 0u);
        }
        if (!isQuantized(s.store.type))
            return;
        c.align(64);
        c.L(byteOrder_); // the four columns of quarter q of vector v: from piece 4 q + v to piece quarters v + q
        int const quarters = c.width() / 4;
        for (int v = 0; v < 4; ++v)
            for (int q = 0; q < quarters; ++q)
                c.dd(uint32_t(4 * q + v));
    }

    // The sums are in their registers; what the first `done` ops do, too.
    void epilogue(size_t done)
    {
        for (int i = 0; isBytes(s.factors) && !s.storesSums && i < tiles_; ++i)
            c.vcvtdq2ps(c.vec(i), c.vec(i));
        for (size_t i = done; i < s.epilogue.size(); ++i) {
            EpilogueOp const& op = s.epilogue[i];
            switch (op.kind) {
            case EpilogueOp::kAddC:
                addMatrix(offsetof(GemmArgs, c), offsetof(GemmArgs, ldcBytes));
                break;
            case EpilogueOp::kResidual:
                isFullFloat(s.residualType) ? addMatrix(offsetof(GemmArgs, residual), offsetof(GemmArgs, ldrBytes))
                                            : addNarrow();
                break;
            case EpilogueOp::kBias:
                withVector(offsetof(GemmArgs, bias), false);
                break;
            case EpilogueOp::kScale:
                withVector(offsetof(GemmArgs, scale), true);
                break;
            case EpilogueOp::kRowScale:
                scaleRows();
                break;
            case EpilogueOp::kActivation:
                emitActivations(c, op.activation, activated(), tiles_, oldStack_, scratch_, loop_);
                break;
            case EpilogueOp::kOneScale:
                load(row_, offsetof(GemmArgs, scale));
                multiplyAll(c.ptr[row_]);
                break;
            case EpilogueOp::kToByte:
                toBytes();
                break;
            case EpilogueOp::kOutputScale:
                multiplyAll(number(offsetof(IntegerNumbers, outputScale)));
                break;
            }
        }
        for (int i = 0; s.gated && i < activated(); ++i)
            c.vmulps(c.vec(i), c.vec(i), c.vec(activated() + i));
        if (isQuantized(s.store.type))
            return storeBytes();
        walk(offsetof(GemmArgs, c), offsetof(GemmArgs, ldcBytes), [&](int row) {
            for (int v = 0; v < stored(); ++v)
                if (isFullFloat(s.store.type))
                    store(c.ptr[row_ + v * c.vectorBytes()], v, acc(row, v));
                else
                    storeHalves(v, acc(row, v));
        });
    }

    // Runs f(row) with row_ at each row of a matrix.
    template <class F>
    void walk(size_t pointerOffset, size_t strideOffset, F const& f)
    {
        load(row_, pointerOffset);
        load(rowStride_, strideOffset);
        for (int row = 0; row < s.rows; ++row) {
            f(row);
            if (row + 1 < s.rows)
                c.add(row_, rowStride_);
        }
    }

    // Reads into register `to`; the columns that do not exist become zero.
    void read(int to, bool masked, Xbyak::Address const& from)
    {
        if (!masked)
            c.vmovups(c.vec(to), from);
        else if (c.avx512())
            c.vmovups(c.vec(to) | c.k1 | Xbyak::util::T_z, from);
        else {
            c.vmovups(c.vec(to), c.ptr[mask_]);
            c.vmaskmovps(c.vec(to), c.vec(to), from);
        }
    }

    void store(Xbyak::Address const& to, int v, int from)
    {
        if (!isMasked(v))
            c.vmovups(to, c.vec(from));
        else if (c.avx512())
            c.vmovups(to | c.k1, c.vec(from));
        else {
            c.vmovups(c.vec(tiles_), c.ptr[mask_]);
            c.vmaskmovps(to, c.vec(tiles_), c.vec(from));
        }
    }

    void addMatrix(size_t pointerOffset, size_t strideOffset)
    {
        walk(pointerOffset, strideOffset, [&](int row) {
            for (int v = 0; v < s.vectors; ++v) {
                Xbyak::Address const from = c.ptr[row_ + v * c.vectorBytes()];
                int const temp = tiles_ + v % free_;
                if (isMasked(v) && !s.gated) {
                    read(temp, true, from);
                    c.vaddps(c.vec(acc(row, v)), c.vec(acc(row, v)), c.vec(temp));
                } else {
                    c.vaddps(c.vec(acc(row, v)), c.vec(acc(row, v)), from);
                }
            }
        });
    }

    void withVector(size_t pointerOffset, bool multiply)
    {
        load(row_, pointerOffset);
        for (int v = 0; v < s.vectors; ++v) {
            int const temp = tiles_ + v % free_;
            read(temp, isMasked(v) && !s.gated, c.ptr[row_ + v * c.vectorBytes()]);
            for (int row = 0; row < s.rows; ++row) {
                Vec const a = c.vec(acc(row, v));
                multiply ? c.vmulps(a, a, c.vec(temp)) : c.vaddps(a, a, c.vec(temp));
            }
        }
    }

    void scaleRows()
    {
        load(row_, offsetof(GemmArgs, rowScale));
        for (int row = 0; row < s.rows; ++row) {
            int const temp = tiles_ + row % free_;
            c.vbroadcastss(c.vec(temp), c.ptr[row_ + 4 * row]);
            for (int v = 0; v < s.vectors; ++v)
                c.vmulps(c.vec(acc(row, v)), c.vec(acc(row, v)), c.vec(temp));
        }
    }

private:
    // The last columns that AVX2 takes apart by bytes: below the stack pointer, where nobody else writes (the System V
    // convention keeps 128 bytes there for functions that call none).
    static constexpr int kBelowStack = -64;
    Xbyak::Label maskTable_, byteOrder_;

    // --- of sums of integers ---

    Xbyak::Address number(size_t offset) const { return argument(offsetof(GemmArgs, numbers) + offset); }

    void multiplyAll(Xbyak::Address const& by)
    {
        c.vbroadcastss(c.vec(tiles_), by);
        for (int i = 0; i < tiles_; ++i)
            c.vmulps(c.vec(i), c.vec(i), c.vec(tiles_));
    }

    void toBytes()
    {
        int const least = tiles_, most = tiles_ + 1, temp = tiles_ + 2, factor = tiles_ + 3;
        c.loadConstant(least, -128.f);
        c.loadConstant(most, 127.f);
        c.vbroadcastss(c.vec(factor), number(offsetof(IntegerNumbers, innerScale)));
        for (int i = 0; i < tiles_; ++i) {
            emitRoundToByte(c, i, least, most, temp);
            c.vmulps(c.vec(i), c.vec(i), c.vec(factor));
        }
    }

    // The residual, of i8 or f16.
    void addNarrow()
    {
        int const value = tiles_, factor = tiles_ + 1, each = int(sizeOf(s.residualType));
        bool const bytes = isQuantized(s.residualType);
        if (bytes)
            c.vbroadcastss(c.vec(factor), number(offsetof(IntegerNumbers, residualScale)));
        walk(offsetof(GemmArgs, residual), offsetof(GemmArgs, ldrBytes), [&](int row) {
            for (int v = 0; v < s.vectors; ++v) {
                Xbyak::RegExp const at = row_ + v * c.width() * each;
                bool const apart = isMasked(v) && !c.avx512();
                Xbyak::Address const from = apart ? c.ptr[c.rsp + kBelowStack] : c.ptr[at];
                Vec const to = isMasked(v) && c.avx512() ? c.vec(value) | c.k1 | Xbyak::util::T_z : c.vec(value);
                if (apart)
                    copyBytes(c.rsp + kBelowStack, at, 0, each);
                bytes ? c.vpmovsxbd(to, from) : c.vcvtph2ps(to, from);
                if (bytes) {
                    c.vcvtdq2ps(c.vec(value), c.vec(value));
                    c.vmulps(c.vec(value), c.vec(value), c.vec(factor));
                }
                c.vaddps(c.vec(acc(row, v)), c.vec(acc(row, v)), c.vec(value));
            }
        });
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
        load(loop_, offsetof(GemmArgs, lastColumns));
        c.lea(loop_, c.ptr[loop_ * bytesEach + full * bytesEach]);
        c.L(again);
        c.mov(c.al, c.byte[from + loop_ - 1]);
        c.mov(c.byte[to + loop_ - 1], c.al);
        c.dec(loop_);
        c.jnz(again, c.T_NEAR);
    }

    // Floats to integers; saturating packs, which keep to quarters of 16 bytes; then the pieces of four columns into
    // their order.
    void storeBytes()
    {
        int const most = tiles_, order = tiles_ + 1, temp = tiles_ + 2, largest = tiles_ + 3;
        bool const clips = s.store.clip && s.store.clip->kind == ActivationKind::kClip;
        if (s.store.clip)
            emitBytes(c, c.vec(most), clips ? s.store.clip->alpha : 0, scratch_);
        else
            c.loadConstant(most, 127.f);
        if (clips)
            emitBytes(c, c.vec(largest), s.store.clip->beta, scratch_);
        c.vmovups(c.vec(order), c.ptr[Xbyak::util::rip + byteOrder_]);
        if (s.store.table)
            load(table_, offsetof(GemmArgs, numbers) + offsetof(IntegerNumbers, table));
        walk(offsetof(GemmArgs, c), offsetof(GemmArgs, ldcBytes), [&](int row) {
            auto x = [&](int v) { return c.vec(acc(row, std::min(v, s.vectors - 1))); };
            for (int v = 0; v < s.vectors; ++v)
                emitToIntegers(c, x(v), s.store.bounded, c.vec(most), c.vec(temp));
            c.vpackssdw(x(0), x(0), x(1));
            if (s.vectors > 2)
                c.vpackssdw(x(2), x(2), x(3));
            c.vpacksswb(x(0), x(0), s.vectors > 2 ? x(2) : x(0));
            int const y = acc(row, 0);
            c.avx512() ? c.vpermd(Xbyak::Zmm(y), Xbyak::Zmm(order), Xbyak::Zmm(y))
                       : c.vpermd(Xbyak::Ymm(y), Xbyak::Ymm(order), Xbyak::Ymm(y));
            if (clips)
                c.vpminsb(c.vec(y), c.vec(y), c.vec(largest));
            if (s.store.clip)
                c.vpmaxsb(c.vec(y), c.vec(y), c.vec(most));
            if (s.store.table == ByteTable::kPermutes)
                emitByteTable(c, y, temp, table_);
            storeRow(y);
            if (s.store.table == ByteTable::kBytes)
                lookUpRow();
        });
    }

    // What storeRow() has stored.
    void lookUpRow()
    {
        Xbyak::Label again;
        if (s.masked) {
            load(loop_, offsetof(GemmArgs, lastColumns));
            c.add(loop_, (s.vectors - 1) * c.width());
        } else {
            c.mov(loop_, uint64_t(s.vectors * c.width()));
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
            copyBytes(row_, c.rsp + kBelowStack, (s.vectors - 1) * c.width(), 1);
            return;
        }
        int const bytes = s.vectors * c.width();
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

// Sums of products of pairs of BF16 by the tiles of AMX. Includes Xbyak: for .cpp files only.

inline constexpr int kTileSums = 64 * 16; // floats: of the largest kernel, 4 tiles of 16 x 16

// The whole function: sums of `spec`, without its epilogue, to args.c, [rows in sixteens][vectors][16] floats.
void emitTileProducts(VectorCode& c, GemmKernelSpec const& spec);

} // namespace tw::kernels::jit
