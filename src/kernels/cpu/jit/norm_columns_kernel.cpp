// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/norm_columns_kernel.h"

#include "kernels/cpu/jit/row_code.h"
#include "kernels/cpu/jit/vector_math.h"

namespace tw::kernels::jit {

namespace {

using Xbyak::Reg64;
using namespace Xbyak::util;

constexpr int kVectors = 4; // side by side, while there are so many

// r10 columns that are left; tile(count, masked) handles `count` vectors, next(bytes) goes on by so many.
template <class Tile, class Next>
void forTiles(VectorCode& c, Tail& tail, Tile const& tile, Next const& next)
{
    Xbyak::Label many, one, last, done;
    c.mov(rax, r10);
    c.and_(rax, c.width() - 1);
    tail.set(rax, rcx);
    auto loop = [&](Xbyak::Label& begin, Xbyak::Label& behind, int vectors) {
        c.L(begin);
        c.cmp(r10, vectors * c.width());
        c.jl(behind, c.T_NEAR);
        tile(vectors, false);
        next(vectors * c.vectorBytes());
        c.sub(r10, vectors * c.width());
        c.jmp(begin, c.T_NEAR);
    };
    loop(many, one, kVectors);
    loop(one, last, 1);
    c.L(last);
    c.test(r10, r10);
    c.jz(done, c.T_NEAR);
    tile(1, true);
    c.L(done);
}

class MomentsEmitter
{
public:
    MomentsEmitter(VectorCode& code, bool rms) : c(code), rms_(rms), tail_(code, 15) {}

    void emit()
    {
        auto load = [&](Reg64 const& r, size_t offset) { c.mov(r, c.ptr[rdi + int(offset)]); };
        load(r8, offsetof(ColumnMomentsArgs, x));
        load(rsi, offsetof(ColumnMomentsArgs, mean));
        load(rdx, offsetof(ColumnMomentsArgs, squares));
        load(r10, offsetof(ColumnMomentsArgs, columns));
        load(r11, offsetof(ColumnMomentsArgs, stride));
        forTiles(
            c, tail_, [&](int vectors, bool masked) { tile(vectors, masked); },
            [&](int bytes) {
                for (Reg64 const& r : {r8, rsi, rdx})
                    c.add(r, bytes);
            });
        c.vzeroupper();
        c.ret();
        tail_.table();
    }

private:
    static constexpr int kSum = 0, kMean = kVectors, kTemp = 2 * kVectors;

    // body(i, register) with x's vector i of each row in a register.
    template <class Body>
    void rows(int vectors, bool masked, Body const& body)
    {
        Xbyak::Label next;
        c.mov(rax, r8);
        c.mov(rcx, c.ptr[rdi + int(offsetof(ColumnMomentsArgs, rows))]);
        c.L(next);
        for (int i = 0; i < vectors; ++i) {
            if (masked)
                tail_.load(kTemp + i, c.ptr[rax]);
            else
                c.vmovups(c.vec(kTemp + i), c.ptr[rax + i * c.vectorBytes()]);
            body(i, kTemp + i);
        }
        c.add(rax, r11);
        c.dec(rcx);
        c.jnz(next, c.T_NEAR);
    }
    void store(Reg64 const& to, int from, int vectors, bool masked)
    {
        for (int i = 0; i < vectors; ++i)
            if (masked)
                tail_.store(c.ptr[to], from + i);
            else
                c.vmovups(c.ptr[to + i * c.vectorBytes()], c.vec(from + i));
    }
    void tile(int vectors, bool masked)
    {
        for (int i = 0; i < vectors; ++i)
            c.zero(kSum + i);
        if (!rms_) {
            for (int i = 0; i < vectors; ++i)
                c.zero(kMean + i);
            rows(vectors, masked, [&](int i, int v) { c.vaddps(c.vec(kMean + i), c.vec(kMean + i), c.vec(v)); });
            c.vbroadcastss(c.vec(kTemp), c.ptr[rdi + int(offsetof(ColumnMomentsArgs, inverseRows))]);
            for (int i = 0; i < vectors; ++i)
                c.vmulps(c.vec(kMean + i), c.vec(kMean + i), c.vec(kTemp));
            store(rsi, kMean, vectors, masked);
        }
        rows(vectors, masked, [&](int i, int v) {
            if (!rms_)
                c.vsubps(c.vec(v), c.vec(v), c.vec(kMean + i));
            c.vfmadd231ps(c.vec(kSum + i), c.vec(v), c.vec(v));
        });
        store(rdx, kSum, vectors, masked);
    }

    VectorCode& c;
    bool rms_;
    Tail tail_;
};

class ApplyEmitter
{
public:
    ApplyEmitter(VectorCode& code, ColumnApplyForm const& form) : c(code), form_(form), tail_(code, 15) {}

    void emit()
    {
        for (Reg64 const& r : {rbx, r12, r13})
            c.push(r);
        auto load = [&](Reg64 const& r, size_t offset) { c.mov(r, c.ptr[rdi + int(offset)]); };
        load(r8, offsetof(ColumnApplyArgs, x));
        load(r9, offsetof(ColumnApplyArgs, y));
        load(r13, offsetof(ColumnApplyArgs, mean));
        load(rsi, offsetof(ColumnApplyArgs, scale));
        load(rdx, offsetof(ColumnApplyArgs, shift));
        load(r10, offsetof(ColumnApplyArgs, columns));
        forTiles(
            c, tail_, [&](int vectors, bool masked) { tile(vectors, masked); },
            [&](int bytes) {
                for (Reg64 const& r : {r8, r9, r13, rsi, rdx})
                    c.add(r, bytes);
            });
        for (Reg64 const& r : {r13, r12, rbx})
            c.pop(r);
        c.vzeroupper();
        c.ret();
        tail_.table();
    }

private:
    // Means and shifts are read where they are used, but for partial vectors.
    static constexpr int kScale = 0, kMean = kVectors, kShift = kMean + 1, kX = kShift + 1, kTemp = kX + 1;

    // rax, r11: x and y of the row; rbx, r12: its gamma and beta.
    void tile(int vectors, bool masked)
    {
        if (masked)
            for (auto [to, from] : {std::pair{kScale, rsi}, {kMean, r13}, {kShift, rdx}})
                tail_.load(to, c.ptr[from]);
        for (int i = 0; i < vectors && !masked; ++i)
            c.vmovups(c.vec(kScale + i), c.ptr[rsi + i * c.vectorBytes()]);
        c.mov(rax, r8);
        c.mov(r11, r9);
        if (form_.gamma)
            c.mov(rbx, c.ptr[rdi + int(offsetof(ColumnApplyArgs, gamma))]);
        if (form_.beta)
            c.mov(r12, c.ptr[rdi + int(offsetof(ColumnApplyArgs, beta))]);
        c.mov(rcx, c.ptr[rdi + int(offsetof(ColumnApplyArgs, rows))]);
        Xbyak::Label next;
        c.L(next);
        for (int i = 0; i < vectors; ++i)
            vector(i, masked);
        c.add(rax, c.ptr[rdi + int(offsetof(ColumnApplyArgs, xStride))]);
        c.add(r11, c.ptr[rdi + int(offsetof(ColumnApplyArgs, yStride))]);
        if (form_.gamma)
            c.add(rbx, 4);
        if (form_.beta)
            c.add(r12, 4);
        c.dec(rcx);
        c.jnz(next, c.T_NEAR);
    }
    void vector(int i, bool masked)
    {
        int const at = i * c.vectorBytes();
        if (masked) {
            tail_.load(kX, c.ptr[rax]);
            c.vsubps(c.vec(kX), c.vec(kX), c.vec(kMean));
            c.vfmadd213ps(c.vec(kX), c.vec(kScale), c.vec(kShift));
        } else {
            c.vmovups(c.vec(kX), c.ptr[rax + at]);
            c.vsubps(c.vec(kX), c.vec(kX), c.ptr[r13 + at]);
            c.vfmadd213ps(c.vec(kX), c.vec(kScale + i), c.ptr[rdx + at]);
        }
        if (form_.gamma) {
            c.vbroadcastss(c.vec(kTemp), c.ptr[rbx]);
            c.vmulps(c.vec(kX), c.vec(kX), c.vec(kTemp));
        }
        if (form_.beta) {
            c.vbroadcastss(c.vec(kTemp), c.ptr[r12]);
            c.vaddps(c.vec(kX), c.vec(kX), c.vec(kTemp));
        }
        if (form_.activation)
            emitActivation(c, *form_.activation, kX, kTemp);
        if (masked)
            tail_.store(c.ptr[r11], kX);
        else
            c.vmovups(c.ptr[r11 + at], c.vec(kX));
    }

    VectorCode& c;
    ColumnApplyForm form_;
    Tail tail_;
};

} // namespace

Result<ColumnMomentsKernel> ColumnMomentsKernel::emit(Isa isa, bool rms)
{
    ColumnMomentsKernel kernel;
    TW_ASSIGN(kernel.code_, jit::emit(isa, [&](VectorCode& c) { MomentsEmitter(c, rms).emit(); }));
    return kernel;
}

Result<ColumnApplyKernel> ColumnApplyKernel::emit(Isa isa, ColumnApplyForm const& form)
{
    ColumnApplyKernel kernel;
    TW_ASSIGN(kernel.code_, jit::emit(isa, [&](VectorCode& c) { ApplyEmitter(c, form).emit(); }));
    return kernel;
}

} // namespace tw::kernels::jit
