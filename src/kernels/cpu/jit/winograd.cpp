// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/winograd.h"

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "kernels/cpu/jit/vector_code.h"
#include "kernels/cpu/jit/vector_math.h"

namespace tw::kernels::jit {

namespace {

using Xbyak::Reg64;

// The points of m = 4 besides 0 and infinity are +-kA and +-kB.
constexpr double kA = 11.0 / 16, kB = 11.0 / 8, kA2 = kA * kA, kB2 = kB * kB;
constexpr double kSum = kA2 + kB2, kProduct = kA2 * kB2;
// 1 / product of (point - other finite point): scales of the rows of G, applied by A.
constexpr double kZero = 1 / kProduct, kNear = 1 / (2 * kA2 * (kA2 - kB2)), kFar = 1 / (2 * kB2 * (kB2 - kA2));

// Weights are read once, from memory; the hardware loses track of them among the t^2 streams that are written.
constexpr int kAhead = 9216; // bytes

constexpr int kMaxSide = 6;
using Line = std::array<int, kMaxSide>; // register numbers

// A pool of registers and the one-dimensional transforms: those take a line of registers, work in place with one
// register more, and return which registers hold the results; the others go back to the pool.
class Lines
{
public:
    Lines(VectorCode& code, int m, int registers) : c(code), m_(m)
    {
        for (int i = registers; i-- > 0;)
            free_.push_back(i);
    }

    int take()
    {
        int const r = free_.back();
        free_.pop_back();
        return r;
    }
    void give(int r) { free_.push_back(r); }
    // Constants that stay in registers; others are read from memory.
    void keep(std::initializer_list<double> values)
    {
        for (double value : values) {
            int const r = take();
            c.loadConstant(r, float(value));
            kept_[value] = r;
        }
    }

    // Bt d.
    Line input(Line d)
    {
        int const e = take();
        if (m_ == 2) {
            sub(d[0], d[0], d[2]);
            sub(d[3], d[3], d[1]);
            add(e, d[2], d[1]);
            sub(d[2], d[2], d[1]);
            give(d[1]);
            return {d[0], e, d[2], d[3]};
        }
        scaleAdd(d[0], kProduct, d[4]);
        addScaled(d[0], d[2], -kSum);
        addScaled(d[5], d[1], kProduct);
        addScaled(d[5], d[3], -kSum);
        copy(e, d[4]);
        addScaled(e, d[2], -kB2);
        addScaled(d[4], d[2], -kA2);
        copy(d[2], d[3]);
        addScaled(d[2], d[1], -kB2);
        addScaled(d[3], d[1], -kA2);
        copy(d[1], e);
        addScaled(d[1], d[2], kA);
        addScaled(e, d[2], -kA);
        copy(d[2], d[4]);
        addScaled(d[2], d[3], kB);
        addScaled(d[4], d[3], -kB);
        give(d[3]);
        return {d[0], d[1], e, d[2], d[4], d[5]};
    }

    // G g.
    Line filter(Line g)
    {
        if (m_ == 2) {
            int const e = take(), f = take();
            add(e, g[0], g[2]);
            sub(f, e, g[1]);
            add(e, e, g[1]);
            give(g[1]);
            return {g[0], e, f, g[2]};
        }
        Line u{g[0], take(), take(), take(), take(), g[2]};
        for (int i : {1, 3}) {
            double const x = i == 1 ? kA : kB;
            int const plus = u[size_t(i)], minus = u[size_t(i + 1)];
            copy(minus, g[0]);
            addScaled(minus, g[2], x * x);
            copy(plus, minus);
            addScaled(plus, g[1], x);
            addScaled(minus, g[1], -x);
        }
        give(g[1]);
        return u;
    }

    // The first `count` rows of At m. With count < m the last register of the line is not read.
    Line output(Line m, int count)
    {
        int const e = take();
        add(e, m[1], m[2]);
        sub(m[1], m[1], m[2]);
        if (m_ == 2) {
            addScaled(m[0], e, 0.5);
            if (count > 1)
                addScaled(m[3], m[1], 0.5);
            return finish({m[0], m[3]}, count, {m[1], m[2], e});
        }
        add(m[2], m[3], m[4]);
        sub(m[3], m[3], m[4]);
        multiply(m[0], m[0], kZero);
        addScaled(m[0], e, kNear);
        addScaled(m[0], m[2], kFar);
        if (count > 3) {
            addScaled(m[5], m[1], kA * kA2 * kNear);
            addScaled(m[5], m[3], kB * kB2 * kFar);
        }
        if (count > 1) {
            multiply(m[4], m[1], kA * kNear);
            addScaled(m[4], m[3], kB * kFar);
        }
        if (count > 2) {
            multiply(e, e, kA2 * kNear);
            addScaled(e, m[2], kB2 * kFar);
        }
        return finish({m[0], m[4], e, m[5]}, count, {m[1], m[2], m[3]});
    }

private:
    VectorCode& c;
    int m_;
    std::vector<int> free_;
    std::map<double, int> kept_;

    Line finish(Line results, int count, std::initializer_list<int> unused)
    {
        for (int r : unused)
            give(r);
        for (int i = count; i < m_; ++i)
            give(results[size_t(i)]);
        return results;
    }
    Vec v(int r) const { return c.vec(r); }
    void add(int y, int a, int b) { c.vaddps(v(y), v(a), v(b)); }
    void sub(int y, int a, int b) { c.vsubps(v(y), v(a), v(b)); }
    void copy(int y, int x) { c.vmovaps(v(y), v(x)); }
    template <class F>
    void withConstant(double value, F const& f)
    {
        if (auto at = kept_.find(value); at != kept_.end())
            f(static_cast<Xbyak::Operand const&>(v(at->second)));
        else
            f(static_cast<Xbyak::Operand const&>(c.constant(float(value))));
    }
    void multiply(int y, int x, double k)
    {
        withConstant(k, [&](Xbyak::Operand const& o) { c.vmulps(v(y), v(x), o); });
    }
    void addScaled(int y, int x, double k) // y += k x
    {
        if (k < 0)
            withConstant(-k, [&](Xbyak::Operand const& o) { c.vfnmadd231ps(v(y), v(x), o); });
        else
            withConstant(k, [&](Xbyak::Operand const& o) { c.vfmadd231ps(v(y), v(x), o); });
    }
    void scaleAdd(int y, double k, int z) // y = k y + z
    {
        withConstant(k, [&](Xbyak::Operand const& o) { c.vfmadd132ps(v(y), v(z), o); });
    }
};

// Space for `vectors` vectors on the stack, and back.
void enterStack(VectorCode& c, int vectors)
{
    c.push(c.rbp);
    c.mov(c.rbp, c.rsp);
    if (vectors > 0) {
        c.sub(c.rsp, vectors * c.vectorBytes());
        c.and_(c.rsp, -64);
    }
}
void leave(VectorCode& c)
{
    c.vzeroupper();
    c.mov(c.rsp, c.rbp);
    c.pop(c.rbp);
    c.ret();
}

void emitTransform(VectorCode& c, WinogradInputSpec const& s)
{
    using namespace Xbyak::util;
    int const t = winogradSide(s.m), bytes = c.vectorBytes();
    int const keptRows = c.avx512() ? 4 : 0; // of the vertical transform, in registers; the others go to the stack
    Reg64 const rows[kMaxSide] = {r8, r9, r10, r11, rax, rdx};
    Reg64 const args = rdi, count = rdi, v = rsi, offset = rcx, table = r8, pixel = rax;
    Lines lines(c, s.m, c.vectorCount());

    enterStack(c, (t - keptRows) * t);
    c.mov(v, c.ptr[args + offsetof(WinogradInputArgs, v)]);
    if (s.table) {
        c.mov(table, c.ptr[args + offsetof(WinogradInputArgs, pixels)]);
    } else {
        c.mov(rows[0], c.ptr[args + offsetof(WinogradInputArgs, x)]);
        c.mov(offset, c.ptr[args + offsetof(WinogradInputArgs, rowBytes)]);
        for (int i = 1; i < t; ++i)
            c.lea(rows[i], c.ptr[rows[i - 1] + offset]);
    }
    c.mov(offset, c.ptr[args + offsetof(WinogradInputArgs, offsetBytes)]);
    c.mov(count, c.ptr[args + offsetof(WinogradInputArgs, vectors)]);
    if (s.m == 4)
        lines.keep({kA, kB, kA2, kB2, kSum});

    Xbyak::Label again;
    c.align(32);
    c.L(again);
    std::vector<Line> kept(size_t(keptRows), Line{});
    for (int j = 0; j < t; ++j) {
        Line d{};
        for (int i = 0; i < t; ++i) {
            d[size_t(i)] = lines.take();
            if (s.table)
                c.mov(pixel, c.ptr[table + (i * t + j) * 8]);
            c.vmovups(c.vec(d[size_t(i)]),
                      s.table ? c.ptr[pixel + offset] : c.ptr[rows[i] + offset + j * s.pixelBytes]);
        }
        d = lines.input(d);
        for (int i = 0; i < t; ++i) {
            if (i < keptRows) {
                kept[size_t(i)][size_t(j)] = d[size_t(i)];
            } else {
                c.vmovaps(c.ptr[c.rsp + ((i - keptRows) * t + j) * bytes], c.vec(d[size_t(i)]));
                lines.give(d[size_t(i)]);
            }
        }
    }
    for (int i = 0; i < t; ++i) {
        Line d{};
        for (int j = 0; j < t; ++j) {
            if (i < keptRows) {
                d[size_t(j)] = kept[size_t(i)][size_t(j)];
            } else {
                d[size_t(j)] = lines.take();
                c.vmovaps(c.vec(d[size_t(j)]), c.ptr[c.rsp + ((i - keptRows) * t + j) * bytes]);
            }
        }
        d = lines.input(d);
        for (int j = 0; j < t; ++j) {
            c.vmovaps(c.ptr[v + (i * t + j) * s.positionBytes], c.vec(d[size_t(j)]));
            lines.give(d[size_t(j)]);
        }
    }
    c.add(v, bytes);
    c.add(offset, bytes);
    c.dec(count);
    c.jnz(again, c.T_NEAR);
    leave(c);
}

void emitTransform(VectorCode& c, WinogradFilterSpec const& s)
{
    using namespace Xbyak::util;
    int const t = winogradSide(s.m), bytes = c.vectorBytes();
    bool const inRegisters = c.avx512(); // the result of the vertical transform
    Reg64 const args = rdi, count = rdi, w = rsi, u = rdx;
    Lines lines(c, s.m, c.vectorCount());

    enterStack(c, inRegisters ? 0 : t * 3);
    c.mov(w, c.ptr[args + offsetof(WinogradFilterArgs, w)]);
    c.mov(u, c.ptr[args + offsetof(WinogradFilterArgs, u)]);
    c.mov(count, c.ptr[args + offsetof(WinogradFilterArgs, channels)]);
    if (s.m == 4)
        lines.keep({kA, kB, kA2, kB2});
    Xbyak::Label again;
    c.align(32);
    c.L(again);
    for (int vector = 0; vector < s.vectors; ++vector) {
        Line columns[3]{};
        for (int j = 0; j < 3; ++j) {
            Line g{};
            for (int i = 0; i < 3; ++i) {
                g[size_t(i)] = lines.take();
                int const at = ((i * 3 + j) * s.vectors + vector) * bytes;
                c.vmovups(c.vec(g[size_t(i)]), c.ptr[w + at]);
                if (at % 64 == 0)
                    c.prefetcht1(c.ptr[w + (at + kAhead)]);
            }
            columns[j] = lines.filter(g);
            for (int i = 0; i < t && !inRegisters; ++i) {
                c.vmovaps(c.ptr[c.rsp + (i * 3 + j) * bytes], c.vec(columns[j][size_t(i)]));
                lines.give(columns[j][size_t(i)]);
            }
        }
        for (int i = 0; i < t; ++i) {
            Line g{};
            for (int j = 0; j < 3; ++j) {
                g[size_t(j)] = inRegisters ? columns[j][size_t(i)] : lines.take();
                if (!inRegisters)
                    c.vmovaps(c.vec(g[size_t(j)]), c.ptr[c.rsp + (i * 3 + j) * bytes]);
            }
            g = lines.filter(g);
            for (int j = 0; j < t; ++j) {
                c.vmovaps(c.ptr[u + (i * t + j) * s.positionBytes + vector * bytes], c.vec(g[size_t(j)]));
                lines.give(g[size_t(j)]);
            }
        }
    }
    c.add(w, 9 * s.vectors * bytes);
    c.add(u, s.vectors * bytes);
    c.dec(count);
    c.jnz(again, c.T_NEAR);
    leave(c);
}

void emitTransform(VectorCode& c, WinogradOutputSpec const& s)
{
    using namespace Xbyak::util;
    int const t = winogradSide(s.m), bytes = c.vectorBytes();
    // Long functions run at the end, on results that wait on the stack: they need registers.
    bool const now = s.activation && isShort(s.activation->kind), later = s.activation && !now;
    constexpr int kTemps = 4;                                                           // of short functions
    int const columns = s.columns < s.m ? t - 1 : t, height = s.rows < s.m ? t - 1 : t; // of M that are read
    bool const inRegisters = c.avx512(); // the result of the vertical transform
    int const spill = inRegisters ? 0 : s.rows * columns;
    Reg64 const args = rdi, count = rdi, m = rsi, y = rdx, rowBytes = rcx, bias = r8, residual = r9, residualRow = r10,
                yAt = r11, residualAt = rax;
    Lines lines(c, s.m, c.vectorCount() - kTemps);

    enterStack(c, spill + (later ? s.rows * s.columns : 0));
    auto load = [&](Reg64 const& r, size_t at) { c.mov(r, c.ptr[args + int(at)]); };
    load(m, offsetof(WinogradOutputArgs, m));
    load(y, offsetof(WinogradOutputArgs, y));
    load(rowBytes, offsetof(WinogradOutputArgs, rowBytes));
    load(bias, offsetof(WinogradOutputArgs, bias));
    load(residual, offsetof(WinogradOutputArgs, residual));
    load(residualRow, offsetof(WinogradOutputArgs, residualRowBytes));
    load(count, offsetof(WinogradOutputArgs, vectors));

    Xbyak::Label again;
    c.align(32);
    c.L(again);
    std::vector<Line> rows(size_t(s.m), Line{});
    for (int j = 0; j < columns; ++j) {
        Line d{};
        for (int i = 0; i < t; ++i) {
            d[size_t(i)] = lines.take();
            if (i < height)
                c.vmovups(c.vec(d[size_t(i)]), c.ptr[m + (i * t + j) * s.positionBytes]);
        }
        d = lines.output(d, s.rows);
        for (int i = 0; i < s.rows; ++i) {
            if (inRegisters) {
                rows[size_t(i)][size_t(j)] = d[size_t(i)];
            } else {
                c.vmovaps(c.ptr[c.rsp + (i * columns + j) * bytes], c.vec(d[size_t(i)]));
                lines.give(d[size_t(i)]);
            }
        }
    }
    c.mov(yAt, y);
    if (s.residual)
        c.mov(residualAt, residual);
    for (int i = 0; i < s.rows; ++i) {
        Line d{};
        for (int j = 0; j < t; ++j) {
            if (j >= columns) {
                d[size_t(j)] = lines.take();
            } else if (inRegisters) {
                d[size_t(j)] = rows[size_t(i)][size_t(j)];
            } else {
                d[size_t(j)] = lines.take();
                c.vmovaps(c.vec(d[size_t(j)]), c.ptr[c.rsp + (i * columns + j) * bytes]);
            }
        }
        d = lines.output(d, s.columns);
        for (int j = 0; j < s.columns; ++j) {
            Vec const x = c.vec(d[size_t(j)]);
            if (s.bias)
                c.vaddps(x, x, c.ptr[bias]);
            auto const add = [&] { c.vaddps(x, x, c.ptr[residualAt + j * s.residualPixelBytes]); };
            if (s.residual && !s.residualLast)
                add();
            if (now)
                emitActivation(c, *s.activation, d[size_t(j)], c.vectorCount() - kTemps);
            if (s.residual && s.residualLast && !later)
                add();
            if (later)
                c.vmovaps(c.ptr[c.rsp + (spill + i * s.columns + j) * bytes], x);
            else
                c.vmovups(c.ptr[yAt + j * s.pixelBytes], x);
            lines.give(d[size_t(j)]);
        }
        c.add(yAt, rowBytes);
        if (s.residual)
            c.add(residualAt, residualRow);
    }
    if (later) {
        bool const adds = s.residual && s.residualLast;
        c.mov(yAt, y);
        if (adds)
            c.mov(residualAt, residual);
        for (int i = 0; i < s.rows; ++i) {
            for (int j = 0; j < s.columns; ++j) {
                c.vmovaps(c.vec(0), c.ptr[c.rsp + (spill + i * s.columns + j) * bytes]);
                emitActivation(c, *s.activation, 0, 1);
                if (adds)
                    c.vaddps(c.vec(0), c.vec(0), c.ptr[residualAt + j * s.residualPixelBytes]);
                c.vmovups(c.ptr[yAt + j * s.pixelBytes], c.vec(0));
            }
            c.add(yAt, rowBytes);
            if (adds)
                c.add(residualAt, residualRow);
        }
    }
    c.add(m, bytes);
    c.add(y, bytes);
    if (s.bias)
        c.add(bias, bytes);
    if (s.residual)
        c.add(residual, bytes);
    c.dec(count);
    c.jnz(again, c.T_NEAR);
    leave(c);
}

std::string checkSpec(WinogradInputSpec const&)
{
    return {};
}
std::string checkSpec(WinogradFilterSpec const&)
{
    return {};
}
std::string checkSpec(WinogradOutputSpec const& s)
{
    if (s.rows < 1 || s.rows > s.m || s.columns < 1 || s.columns > s.m)
        return fmt::format("{} x {} pixels", s.rows, s.columns);
    return {};
}

} // namespace

template <class Spec, class Args>
Result<WinogradTransform<Spec, Args>> WinogradTransform<Spec, Args>::emit(Isa isa, Spec const& spec)
{
    std::string const why = checkSpec(spec);
    if ((spec.m != 2 && spec.m != 4) || !why.empty())
        return internalError("a transform of F({}, 3) was asked for {}", spec.m, why);
    WinogradTransform transform;
    TW_ASSIGN(transform.code_, jit::emit(isa, [&](VectorCode& c) { emitTransform(c, spec); }));
    return transform;
}

template struct WinogradTransform<WinogradInputSpec, WinogradInputArgs>;
template struct WinogradTransform<WinogradFilterSpec, WinogradFilterArgs>;
template struct WinogradTransform<WinogradOutputSpec, WinogradOutputArgs>;

} // namespace tw::kernels::jit
