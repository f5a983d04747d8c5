// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/gemv_kernel.h"

#include <cstddef>
#include <cstdlib>
#include <string>

#include "kernels/cpu/jit/row_code.h"
#include "kernels/cpu/jit/vector_math.h"

namespace tw::kernels::jit {

namespace {

using Xbyak::Reg64;

// Sums at most: the rest are a step's numbers of A, a vector of B, and an epilogue's temporaries.
int mostSums(Isa isa)
{
    return isa == Isa::kAvx512 ? 24 : 12;
}

class GemvEmitter
{
public:
    GemvEmitter(VectorCode& code, GemvKernelSpec const& spec)
        : c(code), s(spec), sums_(spec.rows * spec.streams * spec.vectors), tail_(code, code.vectorCount() - 1)
    {
        // Few sums wait for each other: neighbouring steps then have sums of their own.
        int const registers = c.vectorCount() - s.rows - 1 - (s.masked || s.maskedB);
        while (sets_ < kUnroll && sums_ * sets_ < kChains && sums_ * sets_ * 2 <= registers)
            sets_ *= 2;
        bytesFit_ = std::abs(int64_t(s.bStepBytes)) + std::abs(int64_t(s.aStepBytes)) < (1 << 24);
    }

    void emit()
    {
        if (s.masked || s.maskedB) {
            load(rest_, offsetof(GemvArgs, lastColumns));
            tail_.set(rest_, scratch_);
        }
        load(a_, offsetof(GemvArgs, a));
        load(lda_, offsetof(GemvArgs, ldaBytes));
        load(b_, offsetof(GemvArgs, b));
        load(stream_, offsetof(GemvArgs, streamBytes));
        c.lea(lda3_, c.ptr[lda_ + lda_ * 2]);
        for (int i = 0; i < sums_ * sets_; ++i)
            c.zero(i);
        products();
        for (int set = 1; set < sets_; ++set)
            for (int i = 0; i < sums_; ++i)
                c.vaddps(c.vec(i), c.vec(i), c.vec(set * sums_ + i));
        epilogue();
        c.vzeroupper();
        c.ret();
        if (s.masked || s.maskedB)
            tail_.table();
    }

private:
    static constexpr int kUnroll = 4;
    static constexpr int kChains = 8; // sums that hide a product's latency: 4 cycles on two ports

    VectorCode& c;
    GemvKernelSpec const& s;
    int const sums_;
    int sets_ = 1; // of the sums
    bool bytesFit_ = true;
    Tail tail_;
    Reg64 const args_ = Xbyak::util::rdi, a_ = Xbyak::util::rsi, b_ = Xbyak::util::rax, stream_ = Xbyak::util::rdx,
                loop_ = Xbyak::util::rcx, lda_ = Xbyak::util::r8, lda3_ = Xbyak::util::r9, rest_ = Xbyak::util::r10,
                scratch_ = Xbyak::util::r11;
    // After the products.
    Reg64 const row_ = Xbyak::util::r8, rowStride_ = Xbyak::util::r9, apart_ = Xbyak::util::r10;

    void load(Reg64 const& r, size_t offset) { c.mov(r, c.ptr[args_ + int(offset)]); }
    int sum(int row, int stream, int v) const { return (row * s.streams + stream) * s.vectors + v; }

    Xbyak::Address element(int row, int bytes)
    {
        switch (row) {
        case 0:
            return c.ptr[a_ + bytes];
        case 1:
            return c.ptr[a_ + lda_ + bytes];
        case 2:
            return c.ptr[a_ + lda_ * 2 + bytes];
        default:
            return c.ptr[a_ + lda3_ + bytes];
        }
    }

    void products()
    {
        Xbyak::Label again, rest, one, done;
        int const unroll = bytesFit_ ? kUnroll : 1;
        load(loop_, offsetof(GemvArgs, k));
        c.mov(rest_, loop_);
        if (unroll > 1) {
            c.and_(rest_, unroll - 1);
            c.shr(loop_, 2);
            c.jz(rest, c.T_NEAR);
            c.align(32);
            c.L(again);
            for (int u = 0; u < unroll; ++u)
                step(u, u % sets_);
            c.add(a_, unroll * s.aStepBytes);
            c.add(b_, unroll * s.bStepBytes);
            c.dec(loop_);
            c.jnz(again, c.T_NEAR);
        }
        c.L(rest);
        c.test(rest_, rest_);
        c.jz(done, c.T_NEAR);
        c.L(one);
        step(0, 0);
        c.add(a_, s.aStepBytes);
        c.add(b_, s.bStepBytes);
        c.dec(rest_);
        c.jnz(one, c.T_NEAR);
        c.L(done);
    }

    void step(int u, int set)
    {
        int const first = sums_ * sets_, vector = first + s.rows; // numbers of A, a vector of B
        for (int row = 0; row < s.rows; ++row)
            c.vbroadcastss(c.vec(first + row), element(row, u * s.aStepBytes));
        for (int stream = 0; stream < s.streams; ++stream)
            for (int v = 0; v < s.vectors; ++v) {
                int const bytes = u * s.bStepBytes + v * c.width() * sizeOf(s.weights);
                Xbyak::Address const from = stream > 0 ? c.ptr[b_ + stream_ + bytes] : c.ptr[b_ + bytes];
                auto to = [&](int row) { return c.vec(set * sums_ + sum(row, stream, v)); };
                bool const partial = s.maskedB && v == s.vectors - 1;
                if (s.rows == 1 && !partial && s.weights == GemvWeights::kFloat) {
                    c.vfmadd231ps(to(0), c.vec(first), from);
                    continue;
                }
                partial ? tail_.load(vector, from) : read(vector, from);
                for (int row = 0; row < s.rows; ++row)
                    c.vfmadd231ps(to(row), c.vec(vector), c.vec(first + row));
            }
    }

    void read(int to, Xbyak::Address const& from)
    {
        if (s.weights == GemvWeights::kHalf) {
            c.vcvtph2ps(c.vec(to), from);
        } else if (s.weights == GemvWeights::kBfloat16) {
            c.vpmovzxwd(c.vec(to), from);
            c.vpslld(c.vec(to), c.vec(to), 16);
        } else {
            c.vmovups(c.vec(to), from);
        }
    }

    // --- epilogue ---

    // f(register, address, masked) for the vectors of one row of a matrix, or of the bias, with row_ at its first.
    template <class F>
    void alongRow(int row, F const& f)
    {
        for (int stream = 0; stream < s.streams; ++stream)
            for (int v = 0; v < s.vectors; ++v) {
                int const bytes = v * c.vectorBytes();
                f(sum(row, stream, v), stream > 0 ? c.ptr[row_ + apart_ + bytes] : c.ptr[row_ + bytes],
                  s.masked && v == s.vectors - 1);
            }
    }

    void add(int row)
    {
        alongRow(row, [&](int to, Xbyak::Address const& from, bool masked) {
            if (!masked) {
                c.vaddps(c.vec(to), c.vec(to), from);
                return;
            }
            tail_.load(sums_, from);
            c.vaddps(c.vec(to), c.vec(to), c.vec(sums_));
        });
    }

    void addMatrix(size_t offset)
    {
        load(row_, offset);
        for (int row = 0; row < s.rows; ++row) {
            add(row);
            c.add(row_, rowStride_);
        }
    }

    void epilogue()
    {
        load(apart_, offsetof(GemvArgs, columnBytes));
        if (s.bias) {
            load(row_, offsetof(GemvArgs, bias));
            for (int row = 0; row < s.rows; ++row)
                add(row);
        }
        load(rowStride_, offsetof(GemvArgs, ldcBytes));
        if (s.addC)
            addMatrix(offsetof(GemvArgs, c));
        bool const adds = s.residual && s.steps.empty();
        if (adds && !s.residualLast)
            addMatrix(offsetof(GemvArgs, residual));
        if (s.activation)
            activate(*s.activation);
        if (adds && s.residualLast)
            addMatrix(offsetof(GemvArgs, residual));
        load(row_, offsetof(GemvArgs, c));
        for (int row = 0; row < s.rows; ++row) {
            alongRow(row, [&](int from, Xbyak::Address const& to, bool masked) {
                masked ? tail_.store(to, from) : c.vmovups(to, c.vec(from));
            });
            c.add(row_, rowStride_);
        }
    }

    void activate(Activation const& a)
    {
        if (!isShort(a.kind)) {
            bool const keepsMask = s.masked && !c.avx512(); // the loop uses every register
            if (keepsMask) {
                c.sub(c.rsp, 40);
                c.vmovups(c.ptr[c.rsp], c.vec(c.vectorCount() - 1));
            }
            emitActivations(c, a, sums_, sums_, a_, scratch_, loop_);
            if (keepsMask) {
                c.vmovups(c.vec(c.vectorCount() - 1), c.ptr[c.rsp]);
                c.add(c.rsp, 40);
            }
            return;
        }
        for (int i = 0; i < sums_; ++i)
            emitActivation(c, a, i, sums_);
    }
};

} // namespace

bool gemvFits(Isa isa, int rows, int vectors, int streams, bool masked, GemvWeights weights)
{
    if (rows < 1 || rows > kGemvMaxRows || vectors < 1 || streams < 1 || streams > 2)
        return false;
    int const sums = rows * vectors * streams, registers = isa == Isa::kAvx512 ? 32 : 16;
    bool const isRead = rows > 1 || masked || weights != GemvWeights::kFloat; // into a register of its own
    return sums <= mostSums(isa) && sums + rows + isRead + masked <= registers;
}

Result<GemvKernel> GemvKernel::emit(Isa isa, GemvKernelSpec const& spec)
{
    bool const masked = spec.masked || spec.maskedB;
    if (!gemvFits(isa, spec.rows, spec.vectors, spec.streams, masked, spec.weights) || (masked && spec.streams > 1) ||
        (spec.maskedB && spec.weights != GemvWeights::kFloat))
        return internalError("a kernel for few rows was asked for {} rows of {} x {} vectors", spec.rows, spec.streams,
                             spec.vectors);
    GemvKernel kernel;
    kernel.rows_ = spec.rows;
    kernel.streams_ = spec.streams;
    kernel.columns_ = (spec.vectors - (spec.masked ? 1 : 0)) * vectorWidth(isa);
    kernel.isMasked_ = spec.masked;
    TW_ASSIGN(kernel.steps_, StepsKernel::emit(isa, spec.steps, spec.residual));
    TW_ASSIGN(kernel.code_, jit::emit(isa, [&](VectorCode& c) { GemvEmitter(c, spec).emit(); }));
    return kernel;
}

void GemvKernel::runSteps(GemvArgs const& args) const
{
    for (int64_t s = 0; s < streams_; ++s) {
        int64_t const at = s * args.columnBytes / int64_t(sizeof(float));
        steps_(args.c + at, args.ldcBytes, args.residual ? args.residual + at : nullptr, args.ldcBytes, rows_,
               isMasked_ ? columns_ + args.lastColumns : columns_);
    }
}

} // namespace tw::kernels::jit
