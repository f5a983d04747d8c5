// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/depthwise.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/cpu/jit/depthwise_runs.h"
#include "kernels/cpu/jit/vector_code.h"
#include "kernels/cpu/jit/vector_math.h"

namespace tw::kernels::jit {

namespace {

using Xbyak::Reg64;

int vectorCount(Isa isa)
{
    return isa == Isa::kAvx512 ? 32 : 16;
}

// Filter rows of weights stay in registers when a useful tile still fits beside them.
bool weightsInRegisters(Isa isa, int taps, int vectors)
{
    return taps * vectors * 2 < vectorCount(isa);
}

// Outputs of the widest tile. What is beside the accumulators: a row of weights and the column at hand, later what the
// activation needs. Wider than 14 saves no loads worth the code.
int tileWidth(Isa isa, int taps, int vectors)
{
    int const beside = vectors * (1 + (weightsInRegisters(isa, taps, vectors) ? taps : 0));
    return std::min((vectorCount(isa) - std::max(beside, kMathTemps)) / vectors, 14);
}

using Run = DepthwiseRun;

std::vector<Run> runsOf(Isa isa, DepthwiseSpec const& s)
{
    return depthwiseRuns(tileWidth(isa, s.taps * s.group, s.vectors), s);
}

class DepthwiseEmitter
{
public:
    DepthwiseEmitter(VectorCode& code, DepthwiseSpec const& spec)
        : c(code), s(spec), held_(weightsInRegisters(code.isa(), spec.taps * spec.group, spec.vectors))
    {}

    void emit()
    {
        if (s.planes) { // registers of the caller's
            c.push(planes_);
            c.push(plane_);
        }
        load(rowBytes_, offsetof(DepthwiseArgs, xRowBytes));
        for (Run const& run : runsOf(c.isa(), s)) {
            begin(x_, offsetof(DepthwiseArgs, x), (run.first * s.stride - s.before) * s.xPixelBytes);
            begin(y_, offsetof(DepthwiseArgs, y), run.first * s.yPixelBytes);
            if (adds())
                begin(residual_, offsetof(DepthwiseArgs, residual), run.first * s.residualPixelBytes);
            emitRun(
                c, run, tiles_, [&] { tile(run); },
                [&] {
                    c.add(x_, int(run.width * s.stride * s.xPixelBytes));
                    c.add(y_, int(run.width * s.yPixelBytes));
                    if (adds())
                        c.add(residual_, int(run.width * s.residualPixelBytes));
                });
        }
        c.vzeroupper();
        if (s.planes) {
            c.pop(plane_);
            c.pop(planes_);
        }
        c.ret();
    }

private:
    VectorCode& c;
    DepthwiseSpec const& s;
    bool const held_; // weights of a filter row are in registers
    Reg64 const args_ = Xbyak::util::rdi, x_ = Xbyak::util::rsi, y_ = Xbyak::util::rdx, residual_ = Xbyak::util::rcx,
                tiles_ = Xbyak::util::r8, rowBytes_ = Xbyak::util::r9, row_ = Xbyak::util::r10,
                weights_ = Xbyak::util::r11, rows_ = Xbyak::util::rax, planes_ = Xbyak::util::rbx,
                plane_ = Xbyak::util::r12;

    bool adds() const { return s.residual && s.steps.empty(); }
    void load(Reg64 const& r, size_t offset) { c.mov(r, c.ptr[args_ + int(offset)]); }
    void begin(Reg64 const& r, size_t offset, int64_t bytes)
    {
        load(r, offset);
        if (bytes != 0)
            c.add(r, int(bytes));
    }
    // Accumulators, then weights, then columns.
    int acc(int output, int v) const { return output * s.vectors + v; }
    int weight(int width, int tap, int v) const { return (width + tap) * s.vectors + v; }

    void tile(Run const& run)
    {
        if (s.prefetch)
            for (int i = 0; i < run.width; ++i)
                for (int at = 0; at < s.vectors * c.vectorBytes(); at += 64)
                    c.prefetchw(c.ptr[y_ + int((run.width + i) * s.yPixelBytes + at)]);
        load(row_, offsetof(DepthwiseArgs, bias));
        for (int v = 0; v < s.vectors; ++v) {
            c.vmovups(c.vec(acc(0, v)), c.ptr[row_ + v * c.vectorBytes()]);
            for (int i = 1; i < run.width; ++i)
                c.vmovaps(c.vec(acc(i, v)), c.vec(acc(0, v)));
        }
        Xbyak::Label nextPlane, again, done;
        load(weights_, offsetof(DepthwiseArgs, w));
        if (s.planes) {
            load(planes_, offsetof(DepthwiseArgs, planes));
            c.mov(plane_, x_);
            c.test(planes_, planes_);
            c.jle(done, c.T_NEAR);
            c.L(nextPlane);
        }
        load(rows_, offsetof(DepthwiseArgs, rows));
        c.mov(row_, s.planes ? plane_ : x_);
        c.test(rows_, rows_);
        c.jle(done, c.T_NEAR);
        c.align(16);
        c.L(again);
        filterRow(run);
        c.add(row_, rowBytes_);
        c.add(weights_, s.taps * s.group * s.vectors * c.vectorBytes());
        c.dec(rows_);
        c.jnz(again, c.T_NEAR);
        if (s.planes) {
            c.add(plane_, c.ptr[args_ + int(offsetof(DepthwiseArgs, xPlaneBytes))]);
            c.add(weights_, c.ptr[args_ + int(offsetof(DepthwiseArgs, wPlaneSkip))]);
            c.dec(planes_);
            c.jnz(nextPlane, c.T_NEAR);
        }
        if (s.prefetch)
            for (int64_t r = 0; r < s.stride; ++r) {
                for (int64_t j = 0; j < run.width * s.stride; ++j)
                    for (int at = 0; at < s.vectors * c.vectorBytes(); at += 64)
                        c.prefetcht1(c.ptr[row_ + int(j * s.xPixelBytes + at)]);
                c.add(row_, rowBytes_);
            }
        c.L(done);
        int const temp = run.width * s.vectors;
        bool const clip = s.activation && s.activation->kind == ActivationKind::kClip;
        bool const relu = s.activation && s.activation->kind == ActivationKind::kRelu;
        if (relu || clip) // loaded once; NaN of a sum goes through
            c.loadConstant(temp, clip ? s.activation->alpha : 0);
        if (clip)
            c.loadConstant(temp + 1, s.activation->beta);
        for (int i = 0; i < run.width; ++i)
            for (int v = 0; v < s.vectors; ++v) {
                Vec const a = c.vec(acc(i, v));
                auto const add = [&] {
                    c.vaddps(a, a, c.ptr[residual_ + int(i * s.residualPixelBytes + v * c.vectorBytes())]);
                };
                if (adds() && !s.residualLast)
                    add();
                if (clip)
                    c.vminps(a, c.vec(temp + 1), a);
                if (relu || clip)
                    c.vmaxps(a, c.vec(temp), a);
                else if (s.activation)
                    emitActivation(c, *s.activation, acc(i, v), temp);
                if (adds() && s.residualLast)
                    add();
                c.vmovups(c.ptr[y_ + int(i * s.yPixelBytes + v * c.vectorBytes())], a);
            }
    }

    // Column by column: each is read once and added to all outputs that it touches.
    void filterRow(Run const& run)
    {
        if (held_)
            for (int tap = 0; tap < s.taps * s.group; ++tap)
                for (int v = 0; v < s.vectors; ++v)
                    c.vmovups(c.vec(weight(run.width, tap, v)), weightAt(tap, v));
        int const firstColumn = (run.width + (held_ ? s.taps * s.group : 0)) * s.vectors;
        int const columns = (c.vectorCount() - firstColumn) / s.vectors; // registers for columns, used in turn
        int64_t const left = run.first * s.stride - s.before;            // column of the tile's first tap
        int turn = 0;
        for (int64_t j = 0; j <= (run.width - 1) * s.stride + (s.taps - 1) * s.dilation; ++j) {
            if (!run.inside && (left + j < 0 || left + j >= s.inWidth))
                continue;
            std::vector<ColumnUse> const uses = usesOf(s, run.width, j);
            if (uses.empty())
                continue;
            for (int v = 0; v < s.vectors; ++v) {
                Xbyak::Address const from = c.ptr[row_ + int(j * s.xPixelBytes + v * c.vectorBytes())];
                if (s.group > 1) {
                    for (int i = 0; i < s.group; ++i) {
                        ofGroup(c.vec(firstColumn + turn * s.vectors + v), from, i);
                        for (ColumnUse const& u : uses)
                            multiply(run, u.output, v, c.vec(firstColumn + turn * s.vectors + v), u.tap * s.group + i);
                        turn = (turn + 1) % columns;
                    }
                    continue;
                }
                if (held_ && uses.size() == 1) {
                    c.vfmadd231ps(c.vec(acc(uses[0].output, v)), c.vec(weight(run.width, uses[0].tap, v)), from);
                    continue;
                }
                Vec const column = c.vec(firstColumn + turn * s.vectors + v);
                c.vmovups(column, from);
                for (ColumnUse const& u : uses)
                    multiply(run, u.output, v, column, u.tap);
            }
            turn = (turn + 1) % columns;
        }
    }
    void multiply(Run const& run, int output, int v, Vec const& column, int tap)
    {
        if (held_)
            c.vfmadd231ps(c.vec(acc(output, v)), column, c.vec(weight(run.width, tap, v)));
        else
            c.vfmadd231ps(c.vec(acc(output, v)), column, weightAt(tap, v));
    }
    // In the lanes of each group its i-th channel.
    void ofGroup(Vec const& to, Xbyak::Address const& from, int i)
    {
        int const second = s.group == 2 ? i + 2 : i; // of the upper two lanes of 16 bytes
        c.vpermilps(to, from, uint8_t(i | i << 2 | second << 4 | second << 6));
    }

    Xbyak::Address weightAt(int tap, int v) { return c.ptr[weights_ + (tap * s.vectors + v) * c.vectorBytes()]; }
};

} // namespace

char const* depthwiseMisfit(Isa isa, DepthwiseSpec const& s)
{
    if (s.vectors < 1 || s.vectors > 2)
        return "blocks of channels have one or two vectors";
    if (s.group != 1 && s.group != 2 && s.group != 4)
        return "groups have 1, 2 or 4 channels";
    if (s.taps < 1 || s.taps > 64 || s.dilation > 1024 || s.stride < 1 || s.stride > 1024)
        return "windows of up to 64 columns, strides and dilations up to 1024 are taken";
    if (!reachesRows(s))
        return kFarRows;
    constexpr int kActivationSize = 40; // of the longest, in instructions
    int64_t size = 0;
    for (Run const& run : runsOf(isa, s))
        size += run.width * s.vectors * (s.taps * s.group + kActivationSize + s.stride * s.stride + 1);
    return size > 32768 ? "the padding is too wide" : nullptr;
}

Result<DepthwiseKernel> DepthwiseKernel::emit(Isa isa, DepthwiseSpec const& spec)
{
    if (char const* why = depthwiseMisfit(isa, spec))
        return internalError(std::string("a depthwise kernel cannot be made: ") + why);
    DepthwiseKernel kernel;
    kernel.yPixelBytes_ = spec.yPixelBytes;
    kernel.residualPixelBytes_ = spec.residualPixelBytes;
    kernel.outWidth_ = spec.outWidth;
    kernel.columns_ = spec.vectors * vectorWidth(isa);
    TW_ASSIGN(kernel.steps_, StepsKernel::emit(isa, spec.steps, spec.residual));
    TW_ASSIGN(kernel.code_, jit::emit(isa, [&](VectorCode& c) { DepthwiseEmitter(c, spec).emit(); }));
    return kernel;
}

} // namespace tw::kernels::jit
