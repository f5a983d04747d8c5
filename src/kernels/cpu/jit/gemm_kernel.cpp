// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/gemm_kernel.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "device/cpu.h"
#include "kernels/cpu/jit/pointer_walk.h"
#include "kernels/cpu/jit/row_bases.h"
#include "kernels/cpu/jit/tile_code.h"
#include "kernels/cpu/jit/vector_code.h"
#include "kernels/cpu/jit/vector_math.h"

namespace tw::kernels::jit {

namespace {

using Xbyak::Reg64;

class GemmEmitter : PointerWalk<GemmArgs>
{
public:
    GemmEmitter(VectorCode& code, GemmKernelSpec const& spec)
        : PointerWalk(code), s(spec), tiles_(spec.rows * spec.vectors), free_(c.vectorCount() - tiles_),
          a_(code, spec.rows), shifts_(spec.factors == Factors::kBf16Shifts)
    {}

    void emit()
    {
        for (Reg64 const& r : kSaved)
            c.push(r);
        if (s.masked || s.maskedB) {
            load(scratch_, offsetof(GemmArgs, lastColumns));
            if (c.avx512()) {
                c.mov(c.edx, -1);
                c.bzhi(c.edx, c.edx, c.eax);
                c.kmovw(c.k1, c.edx);
            } else {
                c.lea(mask_, c.ptr[Xbyak::util::rip + maskTable_ + 32]);
                c.neg(scratch_);
                c.lea(mask_, c.ptr[mask_ + scratch_ * 4]);
            }
        }
        loadOperands(s, a_);
        begin();
        if (s.prefetchC)
            walk(offsetof(GemmArgs, c), offsetof(GemmArgs, ldcBytes), [&](int) { fetchLines(row_, true); });
        if (s.rowsPerRun > 0) {
            load(cNext_, offsetof(GemmArgs, c));
            if (fetchesResidual())
                load(residualNext_, offsetof(GemmArgs, residual));
        }
        products();
        epilogue();
        c.vzeroupper();
        for (int i = int(std::size(kSaved)); i-- > 0;)
            c.pop(kSaved[i]);
        c.ret();
        if ((s.masked || s.maskedB) && !c.avx512()) {
            c.align(64);
            c.L(maskTable_);
            for (int i = 0; i < 16; ++i)
                c.dd(i < 8 ? 0xffffffffu : 0u);
        }
    }

private:
    GemmKernelSpec const& s;
    int const tiles_, free_; // accumulators are the registers 0 .. tiles_ - 1: see acc()
    RowBases a_;             // r8 .. r11, rbx, rbp, r12
    bool const shifts_;      // pairs, whose numbers become floats
    Reg64 const cNext_ = Xbyak::util::r13, residualNext_ = Xbyak::util::r14;
    Reg64 const kSaved[6] = {Xbyak::util::rbx, Xbyak::util::rbp, Xbyak::util::r12,
                             Xbyak::util::r13, Xbyak::util::r14, Xbyak::util::r15};
    // After the products.
    Reg64 const row_ = Xbyak::util::r8, rowStride_ = Xbyak::util::r9, mask_ = Xbyak::util::r14,
                scratch_ = Xbyak::util::rax, oldStack_ = Xbyak::util::r13;
    Xbyak::Label maskTable_;

    // Of a gated tile the gates come first.
    int acc(int row, int v) const
    {
        int const half = stored();
        return v < half ? row * half + v : (s.rows + row) * half + v - half;
    }
    int stored() const { return s.gated ? s.vectors / 2 : s.vectors; } // vectors of a row
    int activated() const { return s.gated ? tiles_ / 2 : tiles_; }    // accumulators

    Xbyak::Address element(int row, int bytes, bool broadcast)
    {
        Xbyak::RegExp const at = a_.row(row) + bytes;
        return broadcast ? c.ptr_b[at] : c.ptr[at];
    }

    bool beginsWithBias() const
    {
        return !s.fromSums && !s.epilogue.empty() && s.epilogue[0].kind == EpilogueOp::kBias;
    }

    // The sums begin with zero, or with the bias where it would be added to them first.
    void begin()
    {
        for (int row = 0; s.fromSums && row < s.rows; ++row)
            for (int v = 0; v < s.vectors; ++v)
                c.vmovups(c.vec(acc(row, v)), c.ptr[b_ + (row * s.vectors + v) * c.vectorBytes()]);
        if (s.fromSums)
            return;
        if (beginsWithBias())
            load(row_, offsetof(GemmArgs, bias));
        for (int v = 0; v < s.vectors; ++v) {
            if (beginsWithBias())
                read(acc(0, v), isMasked(v) && !s.gated, c.ptr[row_ + v * c.vectorBytes()]);
            for (int row = beginsWithBias() ? 1 : 0; row < s.rows; ++row)
                beginsWithBias() ? c.vmovaps(c.vec(acc(row, v)), c.vec(acc(0, v))) : c.zero(acc(row, v));
        }
    }

    void products()
    {
        if (s.fromSums)
            return;
        int row = 0;
        walkSteps(
            s, a_, [&](Step const& step) { product(step); },
            [&](int i, int steps) {
                for (; row < s.rowsPerRun * (i + 1) / steps; ++row)
                    fetchRow();
            });
    }

    bool fetchesResidual() const
    {
        return (c.avx512() || !(s.masked || s.maskedB)) &&
               std::any_of(s.epilogue.begin(), s.epilogue.end(),
                           [](EpilogueOp const& op) { return op.kind == EpilogueOp::kResidual; });
    }

    // The lines of one row of a tile.
    void fetchLines(Reg64 const& row, bool write)
    {
        for (int at = 0; at < stored() * c.vectorBytes(); at += 64)
            write ? c.prefetchw(c.ptr[row + at]) : c.prefetcht0(c.ptr[row + at]);
    }

    // The next row of C, and of the residual.
    void fetchRow()
    {
        fetchLines(cNext_, true);
        c.add(cNext_, argument(offsetof(GemmArgs, ldcBytes)));
        if (!fetchesResidual())
            return;
        fetchLines(residualNext_, false);
        c.add(residualNext_, argument(offsetof(GemmArgs, ldrBytes)));
    }

    void product(Step const& step)
    {
        int const begin = std::max(step.rowBegin, 0), end = std::min(step.rowEnd, s.rows);
        if (begin >= end)
            return;
        for (int v = 0; v < s.vectors; ++v) {
            int const at = step.bBytes + v * c.vectorBytes();
            read(tiles_ + v, s.maskedB && v == s.vectors - 1, c.ptr[b_ + at]);
            if (shifts_)
                split(tiles_ + v, tiles_ + s.vectors + v);
            if (s.prefetchBytes > 0 && at % 64 == 0)
                c.prefetcht0(c.ptr[b_ + (at + s.prefetchBytes)]);
        }
        bool const embedded = c.avx512() && s.vectors == 1; // one use of each element: no register for it
        if (shifts_)
            return shiftedProducts(step, begin, end);
        int const firstElement = tiles_ + s.vectors, elements = c.vectorCount() - firstElement;
        for (int row = begin; row < end; ++row) {
            if (embedded) {
                multiply(acc(row, 0), tiles_, element(row, step.aBytes, true));
                continue;
            }
            int const e = firstElement + row % elements;
            c.vbroadcastss(c.vec(e), element(row, step.aBytes, false));
            for (int v = 0; v < s.vectors; ++v)
                multiply(acc(row, v), tiles_ + v, c.vec(e));
        }
    }

    void multiply(int to, int b, Xbyak::Operand const& a)
    {
        s.factors == Factors::kFloat ? c.vfmadd231ps(c.vec(to), c.vec(b), a) : c.vdpbf16ps(c.vec(to), c.vec(b), a);
    }

    // The pairs in register `pairs`: the first numbers stay there, the second ones go to `second`.
    void split(int pairs, int second)
    {
        c.vandps(c.vec(second), c.vec(pairs), c.constantBits(0xffff0000u));
        c.vpslld(c.vec(pairs), c.vec(pairs), 16);
    }

    // In the order of vdpbf16ps: the second number's product first.
    void shiftedProducts(Step const& step, int begin, int end)
    {
        int const a = tiles_ + 2 * s.vectors;
        for (int row = begin; row < end; ++row) {
            c.vbroadcastss(c.vec(a), element(row, step.aBytes, false));
            split(a, a + 1);
            for (int v = 0; v < s.vectors; ++v)
                c.vfmadd231ps(c.vec(acc(row, v)), c.vec(tiles_ + s.vectors + v), c.vec(a + 1));
            for (int v = 0; v < s.vectors; ++v)
                c.vfmadd231ps(c.vec(acc(row, v)), c.vec(tiles_ + v), c.vec(a));
        }
    }

    // --- epilogue ---

    bool isMasked(int v) const { return s.masked && v == stored() - 1; }

    void epilogue()
    {
        for (size_t i = beginsWithBias() ? 1 : 0; i < s.epilogue.size(); ++i) {
            EpilogueOp const& op = s.epilogue[i];
            switch (op.kind) {
            case EpilogueOp::kAddC:
                addMatrix(offsetof(GemmArgs, c), offsetof(GemmArgs, ldcBytes));
                break;
            case EpilogueOp::kResidual:
                addMatrix(offsetof(GemmArgs, residual), offsetof(GemmArgs, ldrBytes));
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
                activate(op.activation);
                break;
            }
        }
        for (int i = 0; s.gated && i < activated(); ++i)
            c.vmulps(c.vec(i), c.vec(i), c.vec(activated() + i));
        walk(offsetof(GemmArgs, c), offsetof(GemmArgs, ldcBytes), [&](int row) {
            for (int v = 0; v < stored(); ++v)
                store(c.ptr[row_ + v * c.vectorBytes()], v, acc(row, v));
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

    // Short functions are emitted once per register, the others run in a loop.
    void activate(Activation const& a)
    {
        bool const clip = a.kind == ActivationKind::kClip;
        if (a.kind == ActivationKind::kRelu || clip) { // constants loaded once; NaN of a sum goes through
            c.loadConstant(tiles_, clip ? a.alpha : 0);
            if (clip)
                c.loadConstant(tiles_ + 1, a.beta);
            for (int i = 0; i < activated(); ++i) {
                Vec const x = c.vec(i);
                clip ? c.vminps(x, c.vec(tiles_ + 1), x) : c.vmaxps(x, c.vec(tiles_), x);
                if (clip)
                    c.vmaxps(x, c.vec(tiles_), x);
            }
            return;
        }
        if (isShort(a.kind)) {
            for (int i = 0; i < activated(); ++i)
                emitActivation(c, a, i, tiles_);
            return;
        }
        emitActivationLoop(c, a, activated(), tiles_, oldStack_, scratch_, loop_);
    }
};

std::string check(Isa isa, GemmKernelSpec const& s)
{
    if (s.vectors < 1 || s.vectors > 4)
        return std::to_string(s.vectors) + " vectors (allowed: 1..4)";
    if (isa != Isa::kAvx512 && (s.factors == Factors::kBf16Dots || s.factors == Factors::kBf16Tiles))
        return "AVX-512's or AMX's products of BF16 on " + std::string(isaName(isa));
    int const most = gemmMaxRows(isa, s.vectors, s.factors);
    if (s.rows < 1 || s.rows > most)
        return std::to_string(s.rows) + " rows (allowed: 1.." + std::to_string(most) + " with " +
               std::to_string(s.vectors) + " vectors on " + isaName(isa) + ")";
    if (s.factors == Factors::kBf16Tiles)
        for (StepLoop const* l : {&s.body, &s.tail})
            for (Step const& step : l->steps)
                if (s.maskedB || step.rowBegin > 0 || step.rowEnd < s.rows)
                    return "tiles without all rows, or with a second operand that is not packed";
    if (s.nextLines < 0 || s.nextLines > 256)
        return std::to_string(s.nextLines) + " lines to prefetch (allowed: 0..256)";
    if (s.rowsPerRun < 0 || s.rowsPerRun > 32)
        return std::to_string(s.rowsPerRun) + " rows to prefetch (allowed: 0..32)";
    if (s.body.steps.size() + s.tail.steps.size() > 1024)
        return std::to_string(s.body.steps.size() + s.tail.steps.size()) + " steps (allowed: up to 1024)";
    if (s.gated && s.vectors % 2 != 0)
        return "a gated tile of " + std::to_string(s.vectors) + " vectors (allowed: 2, 4)";
    if (s.gated && !s.steps.empty())
        return "a gated tile with an expression";
    int seen[6] = {};
    for (EpilogueOp const& op : s.epilogue) {
        if (s.gated && op.kind != EpilogueOp::kBias && op.kind != EpilogueOp::kResidual &&
            op.kind != EpilogueOp::kActivation)
            return "more than a residual, a bias and an activation in front of a gate";
        if (op.kind != EpilogueOp::kActivation && seen[op.kind]++ > 0)
            return "one kind of epilogue twice";
        if (op.kind == EpilogueOp::kActivation &&
            (int(op.activation.kind) < 0 || int(op.activation.kind) >= kActivationKinds))
            return "activation kind " + std::to_string(int(op.activation.kind)) + " (allowed: 0.." +
                   std::to_string(kActivationKinds - 1) + ")";
    }
    return {};
}

} // namespace

int gemmMaxRows(Isa isa, int vectors, Factors factors)
{
    static constexpr int kRows[2][5] = {{0, 12, 6, 4, 2}, {0, 28, 14, 9, 6}};
    static constexpr int kShiftedRows[2][5] = {{0, 12, 5, 2, 1}, {0, 28, 13, 8, 5}};
    static constexpr int kTileRows[5] = {0, 32, 32, 16, 16};
    if (vectors < 1 || vectors > 4)
        return 0;
    return factors == Factors::kBf16Tiles    ? kTileRows[vectors]
           : factors == Factors::kBf16Shifts ? kShiftedRows[int(isa)][vectors]
                                             : kRows[int(isa)][vectors];
}

bool hasFactors(device::CpuInfo const& cpu, Isa isa, Factors factors)
{
    switch (factors) {
    case Factors::kBf16Dots:
        return isa == Isa::kAvx512 && cpu.avx512bf16;
    case Factors::kBf16Tiles:
        return isa == Isa::kAvx512 && cpu.amxBf16 && device::permitTiles();
    default:
        return true;
    }
}

void addEnd(GemmKernelSpec& spec, SumEnd const& end, bool residual)
{
    spec.steps = end.steps;
    spec.stepsResidual = residual && !end.steps.empty();
    bool const adds = residual && end.steps.empty();
    if (adds && !end.residualLast)
        spec.epilogue.push_back(EpilogueOp::kResidual);
    if (end.activation)
        spec.epilogue.push_back(*end.activation);
    if (adds && end.residualLast)
        spec.epilogue.push_back(EpilogueOp::kResidual);
}

StepLoop contiguousLoop(Isa isa, int vectors, int unroll, Factors factors)
{
    int const elements = elementsOfStep(factors);
    return evenSteps(unroll, 4 * elements, 4 * vectorWidth(isa) * vectors * elements);
}

Result<GemmKernel> GemmKernel::emit(Isa isa, GemmKernelSpec const& spec)
{
    if (std::string const why = check(isa, spec); !why.empty())
        return internalError("a matrix kernel was asked for " + why);
    GemmKernel kernel;
    kernel.rows_ = spec.rows;
    kernel.columns_ = (spec.vectors - (spec.masked ? 1 : 0)) * vectorWidth(isa);
    kernel.isMasked_ = spec.masked;
    TW_ASSIGN(kernel.steps_, StepsKernel::emit(isa, spec.steps, spec.stepsResidual));
    if (spec.factors == Factors::kBf16Tiles) {
        TW_ASSIGN(kernel.code_, jit::emit(isa, [&](VectorCode& c) { emitTileProducts(c, spec); }));
        TW_ASSIGN(kernel.tileEnd_, emitTileEnd(isa, spec));
        return kernel;
    }
    TW_ASSIGN(kernel.code_, jit::emit(isa, [&](VectorCode& c) { GemmEmitter(c, spec).emit(); }));
    return kernel;
}

} // namespace tw::kernels::jit
