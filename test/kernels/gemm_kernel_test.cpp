// SPDX-License-Identifier: Apache-2.0
// The emitted matrix micro-kernel: every tile size of every instruction set that this CPU has, with random steps, row
// ranges, strides and epilogues, against sums in double. What may not be read is NaN, what may not be written is looked
// at afterwards.
#include "kernels/cpu/jit/gemm_kernel.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "families/elementwise/activate.h"
#include "kernels/cpu/jit/vector_math.h"
#include "ways.h"

namespace {

using namespace tw::kernels::jit;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kUntouched = -12345.5f;

double activationOf(Activation const& a, double x)
{
    switch (a.kind) {
    case ActivationKind::kSwish:
        return x / (1 + std::exp(-x));
    case ActivationKind::kHardSwish:
        return std::isnan(x) ? x : x * std::fmax(0, std::fmin(1, a.alpha * x + a.beta));
    case ActivationKind::kGeluErf:
        return x / 2 * std::erfc(-x / std::sqrt(2.));
    case ActivationKind::kGeluTanh:
        return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    default: {
        double y = x;
        tw::ops::FusedActivation const f(tw::ops::activation::Kind(int(a.kind)), a.alpha, a.beta);
        float rounded = float(y);
        tw::TensorRef ref;
        ref.type = tw::DataType::kFloat;
        ref.dims = tw::Extents{1};
        ref.data = &rounded;
        EXPECT_TRUE(tw::ops::activateReference(f, ref).ok());
        return rounded;
    }
    }
}

// 64-byte aligned floats, `fill` everywhere.
struct Buffer
{
    std::vector<float> storage;
    float* data;
    Buffer(size_t n, float fill) : storage(n + 16, fill)
    {
        data = storage.data();
        while (reinterpret_cast<uintptr_t>(data) % 64)
            ++data;
    }
};

struct GemmTrial
{
    Isa isa;
    GemmKernelSpec spec;
    int pointers, bodyCount, tailCount, columns; // columns: of C, counted from the tile's first
    int lda, ldc, ldr;                           // floats
};

void runTrial(GemmTrial const& t, std::mt19937& rng)
{
    auto random = [&] { return std::uniform_real_distribution<float>(-1, 1)(rng); };
    int const width = vectorWidth(t.isa), panel = t.spec.vectors * width, m = t.spec.rows;
    int const aRun = t.spec.body.aAdvance / 4 * t.bodyCount + t.spec.tail.aAdvance / 4 * t.tailCount;
    size_t const aSize = size_t(m) * t.lda + aRun + 64;
    std::vector<std::vector<float>> a(t.pointers);
    std::vector<void const*> pointers;
    for (auto& block : a) {
        block.assign(aSize, kNan);
        pointers.push_back(block.data());
    }
    int const bRows =
        t.pointers * (int(t.spec.body.steps.size()) * t.bodyCount + int(t.spec.tail.steps.size()) * t.tailCount);
    // What a kernel with maskedB may not read is NaN.
    Buffer b(size_t(bRows) * panel + panel, t.spec.maskedB ? kNan : 0);
    for (int p = 0; p < bRows; ++p)
        for (int j = 0; j < t.columns; ++j)
            b.data[size_t(p) * panel + j] = random();

    // The sum, step by step; elements of A come into being when a step first needs them.
    std::vector<double> want(size_t(m) * panel, 0);
    int bRow = 0;
    for (int p = 0; p < t.pointers; ++p) {
        int at = 0;
        auto run = [&](StepLoop const& l, int count) {
            for (int i = 0; i < count; ++i) {
                for (Step const& s : l.steps) {
                    for (int r = s.rowBegin; r < std::min(s.rowEnd, m); ++r) {
                        float& e = a[p][size_t(r) * t.lda + at + s.aBytes / 4];
                        if (std::isnan(e))
                            e = random();
                        for (int j = 0; j < t.columns; ++j)
                            want[r * panel + j] += double(e) * b.data[size_t(bRow + s.bBytes / 4 / panel) * panel + j];
                    }
                }
                at += l.aAdvance / 4;
                bRow += int(l.steps.size());
            }
        };
        run(t.spec.body, t.bodyCount);
        run(t.spec.tail, t.tailCount);
    }

    int const stored = t.spec.masked ? t.columns : panel; // columns of a row that are read and written
    Buffer c(size_t(m) * t.ldc + 64, kUntouched), residual(size_t(m) * t.ldr + 64, kNan);
    Buffer bias(panel, kNan), scale(panel, kNan);
    std::vector<float> rowScale(static_cast<size_t>(m));
    for (float& x : rowScale)
        x = random();
    for (int j = 0; j < stored; ++j) {
        bias.data[j] = random();
        scale.data[j] = random();
        for (int r = 0; r < m; ++r) {
            c.data[r * t.ldc + j] = random();
            residual.data[r * t.ldr + j] = random();
        }
    }
    for (EpilogueOp const& op : t.spec.epilogue)
        for (int r = 0; r < m; ++r)
            for (int j = 0; j < stored; ++j) {
                double& y = want[r * panel + j];
                switch (op.kind) {
                case EpilogueOp::kAddC:
                    y += c.data[r * t.ldc + j];
                    break;
                case EpilogueOp::kBias:
                    y += bias.data[j];
                    break;
                case EpilogueOp::kScale:
                    y *= scale.data[j];
                    break;
                case EpilogueOp::kRowScale:
                    y *= rowScale[size_t(r)];
                    break;
                case EpilogueOp::kResidual:
                    y += residual.data[r * t.ldr + j];
                    break;
                case EpilogueOp::kActivation:
                    y = activationOf(op.activation, y);
                    break;
                default: // of sums of integers
                    FAIL();
                }
            }

    auto kernel = GemmKernel::emit(t.isa, t.spec);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    GemmArgs args;
    args.a = pointers.data();
    args.pointers = t.pointers;
    args.ldaBytes = 4 * t.lda;
    args.b = b.data;
    args.bodyCount = t.bodyCount;
    args.tailCount = t.tailCount;
    args.c = c.data;
    args.ldcBytes = 4 * t.ldc;
    args.bias = bias.data;
    args.scale = scale.data;
    args.rowScale = rowScale.data();
    args.residual = residual.data;
    args.ldrBytes = 4 * t.ldr;
    args.lastColumns = t.columns - (t.spec.vectors - 1) * width;
    (*kernel)(args);

    for (size_t i = 0; i < c.storage.size(); ++i) {
        ptrdiff_t const at = c.storage.data() + i - c.data;
        int const r = at < 0 ? m : int(at / t.ldc), j = at < 0 ? 0 : int(at % t.ldc);
        if (r >= m || j >= stored)
            ASSERT_EQ(c.storage[i], kUntouched) << "written outside: row " << r << " column " << j;
        else
            ASSERT_NEAR(c.data[at], want[r * panel + j], 2e-5 + 1e-6 * std::fabs(want[r * panel + j]))
                << "row " << r << " column " << j;
    }
}

class GemmKernelTest : public testing::TestWithParam<Isa>
{};

TEST_P(GemmKernelTest, everyTile)
{
    Isa const isa = GetParam();
    int const width = vectorWidth(isa);
    uint32_t const seed = 7;
    std::mt19937 rng(seed);
    auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); };
    for (int vectors = 1; vectors <= 4; ++vectors)
        for (int rows = 1; rows <= gemmMaxRows(isa, vectors); ++rows)
            for (int trial = 0; trial < 6; ++trial) {
                SCOPED_TRACE("seed " + std::to_string(seed) + ", " + isaName(isa) + ", tile " + std::to_string(rows) +
                             "x" + std::to_string(vectors * width) + ", trial " + std::to_string(trial));
                GemmTrial t{isa, {}, pick(0, 3), pick(0, 4), pick(0, 3), 0, 0, 0, 0};
                t.spec.rows = rows;
                t.spec.vectors = vectors;
                t.spec.masked = trial % 2;
                t.columns = (vectors - 1) * width + pick(1, width);
                t.spec.maskedB = trial % 3 == 1;
                t.spec.prefetchBytes = trial == 2 ? 1024 : 0;
                t.spec.nextLines = trial == 3 ? 5 : 0;
                t.spec.nextFromA = pick(0, 1);
                t.spec.prefetchC = trial == 4;
                t.spec.rowsPerRun = trial == 3 ? pick(1, 5) : 0;
                if (trial < 2) {
                    t.spec.body = contiguousLoop(isa, vectors, 4);
                } else { // three taps of which the outer ones leave out rows
                    int const panelBytes = 4 * vectors * width, channels = pick(1, 9);
                    for (int s = 0; s < 3; ++s)
                        for (int u = 0; u < 2; ++u)
                            t.spec.body.steps.push_back({4 * (s * channels + u), panelBytes * (2 * s + u),
                                                         s == 0 ? 1 : 0, s == 2 ? rows - 1 : rows});
                    t.spec.body.aAdvance = 8;
                    t.spec.body.bAdvance = 6 * panelBytes;
                }
                t.spec.tail = contiguousLoop(isa, vectors, 1);
                t.lda = pick(16, 80);
                t.ldc = vectors * width + pick(0, 5);
                t.ldr = vectors * width + pick(0, 5);
                std::vector<EpilogueOp> const all = {EpilogueOp::kAddC, EpilogueOp::kBias, EpilogueOp::kScale,
                                                     EpilogueOp::kRowScale, EpilogueOp::kResidual};
                for (EpilogueOp const& op : all) {
                    if (pick(0, 1))
                        t.spec.epilogue.push_back(op);
                    if (pick(0, 3) == 0)
                        t.spec.epilogue.push_back(
                            Activation{ActivationKind(pick(0, kActivationKinds - 1)), 0.25f, 0.5f});
                }
                runTrial(t, rng);
                if (testing::Test::HasFatalFailure())
                    return;
            }
}

// All magnitudes, signs and kinds of floats, evenly over their bits.
TEST_P(GemmKernelTest, activations)
{
    Isa const isa = GetParam();
    int const width = vectorWidth(isa);
    for (int k = 0; k < kActivationKinds; ++k) {
        ActivationKind const kind = ActivationKind(k);
        SCOPED_TRACE("activation kind " + std::to_string(k));
        Activation const a{kind, kind == ActivationKind::kClip ? -0.75f : 0.25f, 0.5f};
        GemmKernelSpec spec;
        spec.epilogue = {EpilogueOp::kResidual, a};
        auto kernel = GemmKernel::emit(isa, spec);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        bool const cancels = kind == ActivationKind::kGeluErf || kind == ActivationKind::kGeluTanh ||
                             kind == ActivationKind::kHardSigmoid || kind == ActivationKind::kHardSwish;
        // Swish: -x / ln 2 is rounded before its whole part is taken off.
        double const relative = 1e-6, absolute = cancels ? 6e-7 : kind == ActivationKind::kSwish ? 1e-10 : 1e-15;
        std::vector<float> x(width), y(width);
        GemmArgs args;
        args.pointers = 0;
        args.c = y.data();
        args.residual = x.data();
        for (uint64_t bits = 0; bits < (uint64_t(1) << 32);) {
            for (float& e : x) {
                e = std::bit_cast<float>(uint32_t(bits));
                bits += 40009;
            }
            (*kernel)(args);
            for (int i = 0; i < width; ++i) {
                double const want = activationOf(a, x[i]);
                if (std::isnan(want))
                    ASSERT_TRUE(std::isnan(y[i])) << "x " << x[i] << " gives " << y[i];
                else if (std::isinf(float(want)) || std::isinf(y[i]))
                    ASSERT_EQ(y[i], float(want)) << "x " << x[i];
                else
                    ASSERT_NEAR(y[i], want, absolute + relative * std::fabs(want)) << "x " << x[i];
            }
        }
        for (float e : {INFINITY, -INFINITY, kNan, 0.f}) {
            std::fill(x.begin(), x.end(), e);
            (*kernel)(args);
            double const want = activationOf(a, e);
            if (std::isinf(e) && std::isnan(want)) // inf times zero: the limit would do as well
                continue;
            if (std::isnan(y[0]) && std::isinf(e) && k >= int(ActivationKind::kSwish)) // x f(x) with f(-inf) = 0
                continue;
            EXPECT_EQ(std::isnan(y[0]), std::isnan(want)) << "x " << e;
            if (!std::isnan(want)) {
                EXPECT_EQ(y[0], float(want)) << "x " << e;
            }
        }
    }
}

TEST_P(GemmKernelTest, functions)
{
    Isa const isa = GetParam();
    struct Case
    {
        char const* name;
        void (*emit)(VectorCode&, int, int);
        double (*f)(double);
        double low, high;
    };
    Case const cases[] = {{"exp", emitExp, std::exp, -200, 200},
                          {"expm1", emitExpm1, std::expm1, -200, 87.9},
                          {"log", emitLog, std::log, -1, 3.4e38},
                          {"erf", emitErf, std::erf, -3e38, 3e38},
                          {"tanh", emitTanh, std::tanh, -3e38, 3e38},
                          {"sigmoid", emitSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -200, 200},
                          {"log1p", emitLog1pUnit, std::log1p, 0, 1}};
    for (Case const& f : cases) {
        SCOPED_TRACE(f.name);
        auto code = emit(isa, [&](VectorCode& c) {
            c.vmovups(c.vec(9), c.ptr[c.rdi]);
            f.emit(c, 9, 3);
            c.vmovups(c.ptr[c.rdi], c.vec(9));
            c.vzeroupper();
            c.ret();
        });
        ASSERT_TRUE(code.ok()) << code.error().message;
        auto const run = code->entry<void (*)(float*)>();
        float x[16], y[16];
        double worst = 0;
        for (uint64_t bits = 0; bits < (uint64_t(1) << 32);) {
            for (float& e : x) {
                do {
                    e = std::bit_cast<float>(uint32_t(bits));
                    bits += 3989;
                } while (!(e >= f.low && e <= f.high) && !std::isnan(e) && bits < (uint64_t(1) << 32));
                if (!(e >= f.low && e <= f.high) && !std::isnan(e))
                    e = 0.5f;
            }
            std::memcpy(y, x, sizeof x);
            run(y);
            for (int i = 0; i < vectorWidth(isa); ++i) {
                double const want = f.f(x[i]);
                if (std::isnan(want))
                    ASSERT_TRUE(std::isnan(y[i])) << "x " << x[i] << " gives " << y[i];
                else if (std::isinf(float(want)))
                    ASSERT_EQ(y[i], float(want)) << "x " << x[i];
                else {
                    ASSERT_NEAR(y[i], want, 1e-6 * std::fabs(want) + 3e-39) << "x " << x[i];
                    if (std::fabs(want) > 1e-37)
                        worst = std::max(worst, std::fabs(y[i] / want - 1));
                }
            }
        }
        std::string const name = std::string(f.name) + "_worst_relative_error";
        RecordProperty(name, std::to_string(worst));
        std::printf("%s %s: worst relative error %.2e\n", isaName(isa), f.name, worst);
    }
}

// Over all floats: absolute error where GELU is small, relative above.
TEST_P(GemmKernelTest, gelu)
{
    Isa const isa = GetParam();
    for (ActivationKind kind : {ActivationKind::kGeluErf, ActivationKind::kGeluTanh}) {
        Activation const a{kind, 0, 0};
        auto code = emit(isa, [&](VectorCode& c) {
            c.vmovups(c.vec(9), c.ptr[c.rdi]);
            emitActivation(c, a, 9, 3);
            c.vmovups(c.ptr[c.rdi], c.vec(9));
            c.vzeroupper();
            c.ret();
        });
        ASSERT_TRUE(code.ok()) << code.error().message;
        auto const run = code->entry<void (*)(float*)>();
        float x[16], y[16];
        for (uint64_t bits = 0; bits < (uint64_t(1) << 32);) {
            for (float& e : x) {
                e = std::bit_cast<float>(uint32_t(bits));
                bits += 3989;
            }
            std::memcpy(y, x, sizeof x);
            run(y);
            for (int i = 0; i < vectorWidth(isa); ++i) {
                if (std::isnan(x[i]))
                    ASSERT_TRUE(std::isnan(y[i])) << "x " << x[i] << " gives " << y[i];
                else if (x[i] > 1e9f)
                    ASSERT_TRUE(y[i] == x[i] || std::fabs(y[i] / x[i] - 1) < 1e-6) << "x " << x[i] << " gives " << y[i];
                else if (x[i] < -1e9f)
                    ASSERT_NEAR(y[i], 0, 2e-7) << "x " << x[i];
                else
                    ASSERT_NEAR(y[i], activationOf(a, x[i]), 2e-7 + 6e-7 * std::fabs(activationOf(a, x[i])))
                        << "x " << x[i];
            }
        }
    }
}

TEST(GemmKernel, refusesWhatItCannotEmit)
{
    for (Isa isa : isas()) {
        GemmKernelSpec spec;
        spec.rows = gemmMaxRows(isa, 1) + 1;
        EXPECT_FALSE(GemmKernel::emit(isa, spec).ok());
        spec.rows = 0;
        EXPECT_FALSE(GemmKernel::emit(isa, spec).ok());
        spec.rows = 1;
        spec.epilogue = {EpilogueOp::kBias, EpilogueOp::kBias};
        EXPECT_FALSE(GemmKernel::emit(isa, spec).ok());
    }
}

INSTANTIATE_TEST_SUITE_P(Isas, GemmKernelTest, testing::ValuesIn(isas()),
                         [](auto const& info) { return std::string(isaName(info.param)); });

} // namespace
