// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/pointwise_jit.h"

#include <algorithm>

#include "base/round.h"

namespace tw::ops {

namespace {

using namespace kernels::jit;

// The loop over y for one set of shapes: outer axes, rows, and n elements of a row; steps in elements.
struct Plan final : Prepared
{
    Code code;
    Code streaming; // writes past the caches; only for large outputs
    int inputs = 0;
    Extents outer;                                      // without rows and elements
    Extents outerStep[kMaxPointwiseInputs], yOuterStep; // for each outer axis
    int64_t rowStep[kMaxPointwiseInputs] = {}, yRowStep = 0;
    bool spread[kMaxPointwiseInputs] = {}; // one element for a row
    int64_t rows = 1, n = 1;
};

struct Axes
{
    Extents dims;                      // of y, outermost first
    Extents y, x[kMaxPointwiseInputs]; // steps
};

// The dimensions of an input as y's rank sees them.
Extents aligned(PointwiseInput const& in, Extents const& dims, Extents const& y)
{
    Extents e;
    switch (in.kind) {
    case PointwiseInput::Kind::kBroadcast:
        return dims;
    case PointwiseInput::Kind::kScalar:
        for (int i = 0; i < y.rank; ++i)
            e.push(1);
        return e;
    case PointwiseInput::Kind::kChannel:
        for (int i = 0; i < y.rank; ++i)
            e.push(i == in.axis ? y[i] : 1);
        return e;
    case PointwiseInput::Kind::kTrailing:
        for (int i = 0; i < y.rank; ++i)
            e.push(i >= in.axis ? y[i] : 1);
        return e;
    }
    return e;
}

// Steps of a tensor along each axis of y, which are in the order of y's memory: channels last where y has them last.
Extents stepsAlong(Extents const& e, TensorRef const& t, bool channelsLast, bool pixelTensor)
{
    Extents steps = stridesOf(e, true);
    if (pixelTensor) {
        int64_t step = t.pixelStride();
        for (int i = e.rank - 1; i >= 2; --i) {
            steps[i] = e[i] == 1 ? 0 : step;
            step *= e[i];
        }
        steps[1] = e[1] == 1 ? 0 : 1;
        steps[0] = e[0] == 1 ? 0 : step;
    }
    if (!channelsLast)
        return steps;
    Extents s;
    s.push(steps[0]);
    for (int i = 2; i < e.rank; ++i)
        s.push(steps[i]);
    s.push(steps[1]);
    return s;
}

// Joins neighbouring axes along which every tensor steps evenly; drops axes of one element.
void merge(Axes& a, int inputs)
{
    Axes m;
    for (int i = 0; i < a.dims.rank; ++i) {
        if (a.dims[i] == 1)
            continue;
        int const last = m.dims.rank - 1;
        bool joins = last >= 0 && m.y[last] == a.y[i] * a.dims[i];
        for (int k = 0; k < inputs && joins; ++k)
            joins = m.x[k][last] == a.x[k][i] * a.dims[i];
        if (!joins) {
            m.dims.push(a.dims[i]);
            m.y.push(a.y[i]);
            for (int k = 0; k < inputs; ++k)
                m.x[k].push(a.x[k][i]);
            continue;
        }
        m.dims[last] *= a.dims[i];
        m.y[last] = a.y[i];
        for (int k = 0; k < inputs; ++k)
            m.x[k][last] = a.x[k][i];
    }
    a = m;
}

class PointwiseKernel final : public Kernel
{
public:
    PointwiseKernel(Isa isa, PointwiseSpec spec, int64_t streamFrom)
        : isa_(isa), spec_(std::move(spec)), streamFrom_(streamFrom)
    {}

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const> out) const override
    {
        TensorRef const& y = out[0];
        auto plan = std::make_shared<Plan>();
        int const inputs = plan->inputs = int(spec_.inputs.size());
        bool const channelsLast = y.format == Format::kChannelsLast;
        Axes axes;
        axes.y = stepsAlong(y.dims, y, channelsLast, channelsLast);
        for (int i = 0; i < y.dims.rank; ++i)
            axes.dims.push(y.dims[channelsLast ? (i == 0 ? 0 : i + 1 < y.dims.rank ? i + 1 : 1) : i]);
        bool padded = channelsLast; // every tensor may be read and written up to the end of the cache line
        bool gaps = channelsLast && y.stride == 0; // ... and up to the next pixel
        for (int k = 0; k < inputs; ++k) {
            TensorRef const& x = in[size_t(spec_.inputs[size_t(k)].index)];
            bool const pixels =
                x.format == Format::kChannelsLast && spec_.inputs[size_t(k)].kind == PointwiseInput::Kind::kBroadcast;
            Extents const e = aligned(spec_.inputs[size_t(k)], x.dims, y.dims);
            axes.x[k] = stepsAlong(e, x, channelsLast, pixels);
            if (!channelsLast)
                continue;
            bool const oneChannel = e[1] == 1;
            padded = padded && (pixels || oneChannel);
            gaps = gaps && ((pixels && e == y.dims && x.pixelStride() == y.pixelStride()) || e.volume() == 1);
        }
        int const c = axes.dims.rank - 1;
        if (channelsLast)
            axes.y[c] = 1; // for a lone channel too
        if (gaps)
            axes.dims[c] = y.pixelStride();
        else if (padded)
            axes.dims[c] = roundUp(axes.dims[c], 16);
        merge(axes, inputs);
        int rank = axes.dims.rank;
        auto const innerFits = [&] {
            bool fits = axes.y[rank - 1] == 1;
            for (int k = 0; k < inputs; ++k)
                fits = fits && (axes.x[k][rank - 1] == 0 || axes.x[k][rank - 1] == 1);
            return fits;
        };
        if (rank > 0 && innerFits()) {
            plan->n = axes.dims[--rank];
            for (int k = 0; k < inputs; ++k)
                plan->spread[k] = axes.x[k][rank] == 0;
        } else { // one element, or steps of several in the row
            for (int k = 0; k < inputs; ++k)
                plan->spread[k] = true;
        }
        if (rank > 0) {
            plan->rows = axes.dims[--rank];
            plan->yRowStep = axes.y[rank];
            for (int k = 0; k < inputs; ++k)
                plan->rowStep[k] = axes.x[k][rank];
        }
        for (int i = 0; i < rank; ++i) {
            plan->outer.push(axes.dims[i]);
            plan->yOuterStep.push(axes.y[i]);
            for (int k = 0; k < inputs; ++k)
                plan->outerStep[k].push(axes.x[k][i]);
        }
        std::vector<bool> const spread(plan->spread, plan->spread + inputs);
        TW_ASSIGN(plan->code, emitPointwise(isa_, spec_.program, spread, false));
        if (channelsLast && isFullFloat(y.type) && y.sizeBytes() > streamFrom_) {
            TW_ASSIGN(plan->streaming, emitPointwise(isa_, spec_.program, spread, true));
        }
        return std::shared_ptr<Prepared const>(std::move(plan));
    }

    Result<void> run(RunArgs& args) const override
    {
        TensorRef const& y = args.outputs[0];
        if (y.count() == 0)
            return {};
        auto const& plan = static_cast<Plan const&>(*args.prepared);
        bool const aligned = reinterpret_cast<uintptr_t>(y.data) % kCacheLine == 0;
        Code const& code = plan.streaming.sizeBytes() > 0 && aligned ? plan.streaming : plan.code;
        auto const call = code.entry<PointwiseFunction>();
        // Pieces of about kPiece elements: rows, or (in long rows) whole cache lines of one.
        constexpr int64_t kPiece = 8 << 10;
        int64_t const outer = plan.outer.volume(), lines = divideUp(plan.n, 16);
        int64_t const total = outer * plan.rows * plan.n;
        int64_t const most = args.workers->count() < 2 ? 1 : std::clamp<int64_t>(total / kPiece, 1, 64);
        int64_t rowParts = 1, lineParts = 1;
        if (outer < most)
            rowParts = std::min(plan.rows, divideUp(most, outer));
        if (outer * rowParts < most)
            lineParts = std::min(lines, (most + outer * rowParts - 1) / (outer * rowParts));
        auto const piece = [&](int64_t at, int64_t rowPart, int64_t linePart) {
            int64_t const row = plan.rows * rowPart / rowParts, rowEnd = plan.rows * (rowPart + 1) / rowParts;
            int64_t const first = lines * linePart / lineParts * 16;
            int64_t const end = std::min(plan.n, lines * (linePart + 1) / lineParts * 16);
            PointwiseArgs a;
            int64_t yOffset = row * plan.yRowStep + first, rest = at;
            int64_t offsets[kMaxPointwiseInputs];
            for (int k = 0; k < plan.inputs; ++k)
                offsets[k] = row * plan.rowStep[k] + (plan.spread[k] ? 0 : first);
            for (int i = plan.outer.rank - 1; i >= 0; --i) {
                int64_t const index = rest % plan.outer[i];
                rest /= plan.outer[i];
                yOffset += index * plan.yOuterStep[i];
                for (int k = 0; k < plan.inputs; ++k)
                    offsets[k] += index * plan.outerStep[k][i];
            }
            for (int k = 0; k < plan.inputs; ++k) {
                TensorRef const& x = args.inputs[size_t(spec_.inputs[size_t(k)].index)];
                a.x[k] = x.as<char const>() + offsets[k] * sizeOf(x.type);
                a.rowBytes[k] = plan.rowStep[k] * sizeOf(x.type);
            }
            a.y = y.as<char>() + yOffset * sizeOf(y.type);
            a.yRowBytes = plan.yRowStep * sizeOf(y.type);
            a.rows = rowEnd - row;
            a.n = end - first;
            call(&a);
        };
        int64_t const pieces = outer * rowParts * lineParts;
        // Small outer pieces go together.
        int64_t const parts = std::min(pieces, std::max<int64_t>(most, 1));
        auto const part = [&](int64_t p) {
            for (int64_t i = pieces * p / parts; i < pieces * (p + 1) / parts; ++i)
                piece(i / (rowParts * lineParts), i / lineParts % rowParts, i % lineParts);
        };
        if (parts < 2)
            part(0);
        else
            args.workers->run(parts, [&](int64_t p, int) { part(p); });
        return {};
    }

private:
    Isa isa_;
    PointwiseSpec spec_;
    int64_t streamFrom_; // bytes of a result that is written past the caches
};

// f32 alone, or f32 and `beside` together.
Support supportsTypes(Problem const& problem, DataType beside)
{
    bool anyBeside = false;
    auto fits = [&](TensorSpec const& t) {
        anyBeside = anyBeside || t.type == beside;
        return isFullFloat(t.type) || t.type == beside;
    };
    bool allFit = fits(problem.outputs[0]);
    for (TensorSpec const& t : problem.inputs)
        allFit = (!t.present || fits(t)) && allFit;
    if (!allFit)
        return Support::no(isFullFloat(beside) ? std::string("takes f32 only")
                                               : std::string("takes f32 and ") + nameOf(beside) + " only");
    return anyBeside || isFullFloat(beside) ? Support::yes() : Support::no(std::string("nothing is ") + nameOf(beside));
}

// Every step is an instruction of FP32, or two where the first is exact.
bool isExact(PointwiseProgram const& program)
{
    return std::all_of(program.steps.begin(), program.steps.end(),
                       [](ExpressionStep const& s) { return tw::isExact(s.code, s.kind); });
}

} // namespace

PointwiseSpec stepSpec(ExpressionStep const& step, int inputs)
{
    PointwiseSpec spec;
    spec.program.inputs = inputs;
    spec.program.steps = {step};
    for (int i = 0; i < inputs; ++i)
        spec.inputs.push_back({i});
    return spec;
}

Result<PointwiseSpec> stepSpec(std::optional<StepCode> code, int inputs)
{
    if (!code)
        return invalidArgument("there is no emitted code for this operation");
    return stepSpec({*code, 0, inputs - 1}, inputs);
}

Support PointwiseTactic::supports(Problem const& problem) const
{
    TW_SUPPORTS(supportsIsa(*problem.target.cpu, isa_));
    TW_SUPPORTS(supportsTypes(problem, beside_));
    auto spec = spec_(problem);
    if (!spec.ok())
        return Support::no(spec.error().message);
    if (isQuantized(problem.outputs[0].type) && !isExact(spec->program))
        return Support::no("has a function that FP32 instructions do not give exactly, so that i8 would differ");
    if (std::string why = checkProgram(spec->program); !why.empty())
        return Support::no(why);
    // Channels-last tensors whose channels are not those of the output one by one.
    for (PointwiseInput const& in : spec->inputs)
        if (problem.inputs[size_t(in.index)].format == Format::kChannelsLast &&
            in.kind != PointwiseInput::Kind::kBroadcast && in.kind != PointwiseInput::Kind::kScalar)
            return Support::no("takes coefficients in linear format only");
    return Support::yes();
}

std::vector<Formats> PointwiseTactic::formats(Problem const& problem) const
{
    std::vector<Formats> list;
    if (problem.outputs[0].dims.rank >= 3) {
        Formats f = channelsLastFormats(problem);
        bool fits = true; // no constant whose pixels lie in another order
        auto spec = spec_(problem);
        for (size_t i = 0; spec.ok() && i < spec->inputs.size(); ++i) {
            PointwiseInput const& in = spec->inputs[i];
            TensorSpec const& t = problem.inputs[size_t(in.index)];
            if (in.kind != PointwiseInput::Kind::kBroadcast)
                f.inputs[size_t(in.index)] = Format::kLinear;
            else
                fits = fits && (!t.constant || t.dims.rank < 3 || t.dims.volume(2, t.dims.rank) == 1);
        }
        if (spec.ok() && fits)
            list.push_back(std::move(f));
    }
    list.push_back(linearFormats(problem));
    return list;
}

Result<std::unique_ptr<Kernel>> PointwiseTactic::load(Problem const& problem, Config const&, std::string const&) const
{
    TW_ASSIGN(PointwiseSpec spec, spec_(problem));
    for (size_t i = 0; i < spec.inputs.size(); ++i)
        spec.program.x[i] = problem.inputs[size_t(spec.inputs[i].index)].type;
    spec.program.y = problem.outputs[0].type;
    // What is larger would not be found in the last cache by its readers. Writing past the caches and reading back took
    // 1.48, 1.22, 0.82, 0.72 of the time of ordinary stores for 1, 4, 16, 64 MiB (Zen 4, 1 MiB of L2, 32 MiB of L3).
    int64_t const streamFrom = 12 * problem.target.cpu->l2Bytes;
    return std::unique_ptr<Kernel>(std::make_unique<PointwiseKernel>(isa_, std::move(spec), streamFrom));
}

} // namespace tw::ops
