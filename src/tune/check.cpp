// SPDX-License-Identifier: Apache-2.0
#include "tune/check.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string_view>

#include "interp/interp.h"
#include "tactic/convert_format.h"
#include "tactic/parts.h"
#include "tactic/reference.h"
#include "tune/device_run.h"

namespace tw::tune {

namespace {

constexpr int64_t kCompareAll = 4096; // outputs up to this size are compared everywhere
constexpr int64_t kSamples = 160;     // random elements of larger ones
constexpr int64_t kEdges = 100;       // and about so many at the edges
constexpr int64_t kStressSamples = 32;
constexpr uint64_t kSeed = 20221107; // any constant: builds are reproducible
constexpr double kStressScale = 100; // exp() overflows from 89 on
// Of the ops' tolerances: the tuner looks for what is wrong, not for the last digit of a long sum that an activation
// magnifies.
constexpr double kSlack = 4;
constexpr int64_t kGuard = 256;            // bytes on either side of outputs and workspaces
constexpr int64_t kMaxSetBytes = 64 << 20; // of the inputs and outputs at maximum shapes
constexpr int64_t kMaxStressBytes = 256 << 20;
constexpr int64_t kCompareInputs = 1 << 24; // inputs up to so many bytes must be the same after a run
constexpr unsigned char kUnwritten = DeviceRun::kUnwritten;

enum Which
{
    kOptimum,
    kAgain,  // other values, for small tensors: chance must not hide what is wrong
    kStress, // values a hundred times larger
    kMaximum,
    kSetCount,
};

// The first, second, middle, last but one and last index along every dimension, in all combinations, and random
// elements in between, in order; every element of small tensors (empty).
std::vector<int64_t> sample(Extents const& dims, int64_t samples)
{
    int64_t const count = dims.volume();
    if (count <= kCompareAll)
        return {};
    std::vector<int64_t> at{0};
    for (int d = 0; d < dims.rank; ++d) {
        int64_t const n = dims[d];
        std::vector<int64_t> along{0, 1, n / 2, n - 2, n - 1};
        std::erase_if(along, [&](int64_t i) { return i < 0 || i >= n; });
        std::sort(along.begin(), along.end());
        along.erase(std::unique(along.begin(), along.end()), along.end());
        if (int64_t(at.size() * along.size()) > kEdges)
            along = {0, n - 1};
        std::vector<int64_t> next;
        for (int64_t base : at)
            for (int64_t i : along)
                next.push_back(base * n + i);
        at = std::move(next);
    }
    std::mt19937_64 random(kSeed);
    for (int64_t i = 0; i < samples; ++i)
        at.push_back(int64_t(random() % uint64_t(count)));
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
    return at;
}

bool isPointwise(std::string_view op)
{
    for (std::string_view known : {"activation", "elementwise", "scale", "unary", "parametric_relu", "identity"})
        if (op == known)
            return true;
    return false;
}

// Whether every element of a fused node's output needs that element alone of what its first expensive node gives: then
// the others need not be computed.
bool mayBeSampled(ir::Node const& node)
{
    if (node.op->reference)
        return true;
    return std::count_if(node.body->nodes.begin(), node.body->nodes.end(),
                         [](auto const& n) { return !isPointwise(n->op->name); }) <= 1;
}

bool takesAnyValues(ir::Node const& node)
{
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!node.inputs[i] || !isFloating(node.inputs[i]->type) || node.inputs[i]->isConstant())
            continue;
        ops::Domain const d = domainOf(node, int(i));
        if (d.lo != -d.hi || d.integer) // not all around zero: the op means something by its bounds
            return false;
    }
    return true;
}

Error noMemory()
{
    return Error{ErrorCode::kFailedAllocation, "no memory to check tactics"};
}

// Elements with guard bytes on both sides.
class Guarded
{
public:
    explicit Guarded(int64_t bytes) : bytes_(bytes), store_(DataType::kInt8, {bytes + 2 * kGuard}) {}
    bool ok() const { return store_.data() != nullptr; }
    void* data() const { return static_cast<char*>(store_.data()) + kGuard; }
    void clear() const { std::memset(store_.data(), kUnwritten, size_t(bytes_ + 2 * kGuard)); }
    bool isIntact() const
    {
        auto const* p = static_cast<unsigned char const*>(store_.data());
        auto isOurs = [](unsigned char c) { return c == kUnwritten; };
        return std::all_of(p, p + kGuard, isOurs) && std::all_of(p + kGuard + bytes_, p + 2 * kGuard + bytes_, isOurs);
    }

private:
    int64_t bytes_;
    Tensor store_;
};

// As compare(), of some elements wherever their formats put them.
std::string compareAt(std::vector<int64_t> const& elements, TensorRef const& got, TensorRef const& want,
                      ops::Tolerance const& tolerance)
{
    Tensor a(got.type, {int64_t(elements.size())}), b(want.type, {int64_t(elements.size())});
    for (size_t k = 0; k < elements.size(); ++k) {
        a.ref().set(int64_t(k), got.get(got.place(elements[k])));
        b.ref().set(int64_t(k), want.get(want.place(elements[k])));
    }
    std::string const why = compare(a.ref(), b.ref(), tolerance);
    return why.empty() ? why : "of " + std::to_string(elements.size()) + " samples " + why;
}

// Whether the elements are those of `before`, gaps aside.
bool isSame(TensorRef const& t, std::string const& before)
{
    if (t.format == Format::kLinear)
        return std::memcmp(before.data(), t.data, before.size()) == 0;
    if (!isByPixel(t.format)) {
        TensorRef was = t;
        was.data = const_cast<char*>(before.data());
        for (int64_t i = 0; i < t.count(); ++i)
            if (std::memcmp(was.as<char>() + t.place(i) * sizeOf(t.type), t.as<char>() + t.place(i) * sizeOf(t.type),
                            size_t(sizeOf(t.type))) != 0)
                return false;
        return true;
    }
    size_t const step = size_t(t.pixelStride() * sizeOf(t.type)),
                 pixel = size_t(t.dims[channelAxis(t.format, t.dims.rank)] * sizeOf(t.type));
    for (size_t at = 0; at < before.size(); at += step)
        if (std::memcmp(before.data() + at, t.as<char>() + at, pixel) != 0)
            return false;
    return true;
}

} // namespace

struct Checker::Formatted
{
    ops::Formats formats;
    std::vector<Tensor> storage;
    std::vector<Guarded> guarded; // of each output
    Buffers buffers;
};

struct Checker::Set
{
    bool isThere = false;
    bool asParts = false;     // on a GPU: channels-last tensors lie there as parts of wider ones
    double slack = kSlack;    // of the tolerance
    std::string incomparable; // why the reference gives nothing
    std::optional<Error> error;
    std::vector<Tensor> storage;
    std::vector<TensorRef> inputs; // linear
    std::vector<TensorRef> got;    // linear, for kernels that write another format
    std::vector<TensorRef> want;
    std::vector<bool> wanted;     // of output 0; empty: all
    std::vector<int64_t> samples; // their positions
    std::vector<std::unique_ptr<Formatted>> formatted;

    // Storage of a linear tensor, null when memory runs out.
    TensorRef make(DataType type, Extents const& dims)
    {
        storage.emplace_back(type, dims);
        return storage.back().ref();
    }
    Result<void> fill(ops::Problem const& p, Which which)
    {
        int64_t bytes = 0;
        bool isLarger = false;
        for (auto const* specs : {&p.inputs, &p.outputs})
            for (ops::TensorSpec const& t : *specs) {
                isLarger = isLarger || (t.present && !(t.dims == t.maxDims));
                if (which == kMaximum && (t.contents.data || t.maxDims.rank != t.dims.rank))
                    return {};
                bytes += t.present && !t.constant ? TensorRef{t.type, t.maxDims, nullptr}.sizeBytes() : 0;
            }
        if (which == kMaximum && (!isLarger || bytes > kMaxSetBytes))
            return {};
        bool const isSmall = std::all_of(p.outputs.begin(), p.outputs.end(),
                                         [](ops::TensorSpec const& t) { return t.dims.volume() <= kCompareAll; });
        if ((which == kStress && (!takesAnyValues(*p.node) || bytes > kMaxStressBytes)) ||
            (which == kAgain && !isSmall))
            return {};
        for (size_t i = 0; i < p.inputs.size(); ++i) {
            ops::TensorSpec const& spec = p.inputs[i];
            if (!spec.present) {
                inputs.emplace_back();
            } else if (spec.constant) {
                inputs.push_back(TensorRef{spec.type, spec.dims, const_cast<void*>(spec.constant->data())});
            } else if (spec.contents.data) {
                inputs.push_back(spec.contents);
            } else {
                inputs.push_back(make(spec.type, which == kMaximum ? spec.maxDims : spec.dims));
                if (!inputs.back().data)
                    return noMemory();
                ops::Domain domain = domainOf(*p.node, int(i));
                if (which == kStress && isFloating(spec.type)) {
                    domain.lo *= kStressScale;
                    domain.hi *= kStressScale;
                }
                fillRandom(inputs.back(), domain, kSeed + i + uint64_t(which) * 1000);
            }
        }
        return refer(p, which);
    }
    Result<void> refer(ops::Problem const& p, Which which)
    {
        ir::Node const& node = *p.node;
        isThere = true;
        asParts = which == kAgain || which == kStress;
        slack = which == kStress ? kSlack * kStressScale : kSlack;
        // Random inputs may be none that the node accepts (indices, bounds of a slice): then there is nothing to
        // compare.
        auto const shapes = interp::inferConcrete(node, inputs);
        if (!shapes.ok()) {
            incomparable = shapes.error().message;
            return {};
        }
        for (auto const& s : *shapes) {
            got.push_back(make(s.type, s.dims));
            want.push_back(make(s.type, s.dims));
            if (!got.back().data || !want.back().data)
                return noMemory();
        }
        if (mayBeSampled(node) || node.op->reference)
            samples = sample(want[0].dims, which == kOptimum ? kSamples : kStressSamples);
        if (!samples.empty())
            wanted.assign(size_t(want[0].count()), false);
        for (int64_t i : samples)
            wanted[size_t(i)] = true;
        uint64_t state = kSeed;
        if (node.op->reference) {
            ops::RefContext ctx(node, inputs, want);
            ctx.randomState = &state;
            ctx.setWanted(wanted, samples);
            if (auto done = node.op->reference(ctx); !done.ok()) {
                incomparable = done.error().message;
                return {};
            }
            for (size_t i = 0; i < want.size(); ++i)
                want[i].dims = ctx.out(int(i)).dims;
            return {};
        }
        interp::Options options; // a fused node: what it replaced
        options.randomState = &state;
        options.wanted = wanted;
        auto reference = interp::run(*node.body, inputs, options);
        if (!reference.ok()) {
            incomparable = reference.error().message;
            return {};
        }
        for (size_t i = 0; i < want.size(); ++i) {
            storage.push_back(std::move((*reference)[i]));
            want[i] = storage.back().ref();
        }
        return {};
    }
};

Checker::Checker(ops::Problem const& problem, Workers& workers) : problem_(problem), workers_(workers), sets_(kSetCount)
{}
Checker::~Checker() = default;

Checker::Set& Checker::set(int which)
{
    std::unique_ptr<Set>& s = sets_[size_t(which)];
    if (!s) {
        s = std::make_unique<Set>();
        if (auto done = s->fill(problem_, Which(which)); !done.ok())
            s->error = done.error();
    }
    return *s;
}

Result<Checker::Formatted*> Checker::formatted(Set& set, ops::Problem const& problem)
{
    ops::Formats const formats = ops::formatsOf(problem);
    for (auto const& f : set.formatted)
        if (f->formats == formats)
            return f.get();
    auto f = std::make_unique<Formatted>();
    f->formats = formats;
    TW_ASSIGN(f->buffers.inputs, inFormats(set.inputs, problem.inputs, f->storage, workers_));
    for (size_t i = 0; i < set.got.size(); ++i) {
        TensorRef out = set.got[i];
        out.format = problem.outputs[i].format;
        f->guarded.emplace_back(out.sizeBytes());
        if (!f->guarded.back().ok())
            return noMemory();
        out.data = f->guarded.back().data();
        f->buffers.outputs.push_back(out);
    }
    if (problem.cuda) {
        TW_ASSIGN(f->buffers.onDevice,
                  DeviceTensors::create(problem, f->buffers.inputs, f->buffers.outputs, set.asParts));
    }
    set.formatted.push_back(std::move(f));
    return set.formatted.back().get();
}

Result<std::string> Checker::checkSet(Set& set, ops::Problem const& problem, ops::Kernel const& kernel,
                                      char const* tacticName, Workers& workers, bool isTf32)
{
    ir::Node const& node = *problem.node;
    if (set.error)
        return *set.error;
    if (!set.isThere || !set.incomparable.empty())
        return set.incomparable;
    auto wrong = [&](std::string const& how) {
        return Error{ErrorCode::kFailedComputation, "tactic " + std::string(tacticName) +
                                                        " computes wrong values for layer '" + node.name + "': " + how};
    };
    TW_ASSIGN(Formatted * f, formatted(set, problem));
    for (Guarded const& g : f->guarded)
        if (!problem.cuda) // there the device's memory counts
            g.clear();
    std::vector<TensorRef> const& inputs = f->buffers.inputs;
    std::vector<TensorRef> outputs = f->buffers.outputs;
    Guarded const workspace(problem.cuda ? 0 : kernel.workspaceBytes(inputs, outputs));
    if (!workspace.ok())
        return noMemory();
    workspace.clear();
    std::vector<std::string> before;
    for (TensorRef const& x : inputs)
        before.emplace_back(x.data && !problem.cuda && x.sizeBytes() <= kCompareInputs
                                ? std::string(x.as<char>(), size_t(x.sizeBytes()))
                                : std::string());
    uint64_t state = kSeed;
    if (problem.cuda) {
        TW_ASSIGN(auto onDevice, DeviceRun::create(problem, kernel, f->buffers.onDevice));
        TW_TRY(onDevice->run(outputs, set.samples, &state));
    } else {
        TW_ASSIGN(auto prepared, kernel.prepare(inputs, outputs));
        ops::RunArgs args{inputs, outputs, workspace.data(), &state, &workers};
        args.prepared = prepared.get();
        TW_TRY(kernel.run(args));
    }
    for (size_t i = 0; i < f->guarded.size(); ++i)
        if (!problem.cuda && !f->guarded[i].isIntact())
            return wrong("it writes beyond output " + std::to_string(i));
    if (!workspace.isIntact())
        return wrong("it writes beyond its workspace");
    for (size_t i = 0; i < inputs.size(); ++i)
        if (!before[i].empty() && !isSame(inputs[i], before[i]))
            return wrong("it writes to its input " + std::to_string(i));
    for (size_t i = 0; i < set.want.size(); ++i) {
        TensorRef got = outputs[i];
        ops::Tolerance tolerance = toleranceOf(node, got.type);
        if (isTf32)
            tolerance = tolerance.forTf32();
        tolerance.absolute *= set.slack;
        tolerance.relative *= set.slack;
        if (i == 0 && !set.samples.empty() && got.dims == set.want[0].dims) {
            if (std::string why = compareAt(set.samples, got, set.want[0], tolerance); !why.empty())
                return wrong("output 0, " + why);
            continue;
        }
        if (got.format != Format::kLinear) {
            got = set.got[i];
            got.dims = outputs[i].dims;
            ops::convertFormat(outputs[i], got);
        }
        std::string const why = compare(got, set.want[i], tolerance, i == 0 ? set.wanted : std::vector<bool>{});
        if (!why.empty())
            return wrong("output " + std::to_string(i) + ", " + why);
    }
    return std::string();
}

Result<std::string> Checker::check(ops::Problem const& problem, ops::Kernel const& kernel, char const* tacticName,
                                   Workers& workers, bool isTf32)
{
    TW_ASSIGN(std::string incomparable, checkSet(set(kOptimum), problem, kernel, tacticName, workers, isTf32));
    if (!incomparable.empty())
        return incomparable;
    for (Which extra : {kAgain, kStress, kMaximum}) {
        auto checked = checkSet(set(extra), problem, kernel, tacticName, workers, isTf32);
        if (!checked.ok())
            return std::move(checked).error().in(
                extra == kMaximum
                    ? std::string("at the maximum shapes")
                    : std::string(extra == kStress ? "on large values" : "on other values") +
                          (problem.cuda && ops::hasParts(problem) ? ", channels-last tensors as parts of wider ones"
                                                                  : ""));
    }
    return std::string();
}

Result<Checker::Buffers const*> Checker::buffers(ops::Problem const& problem)
{
    Set& s = set(kOptimum);
    if (s.error)
        return *s.error;
    if (s.got.empty())
        return Error{ErrorCode::kInvalidArgument, s.incomparable};
    TW_ASSIGN(Formatted const* f, formatted(s, problem));
    return &f->buffers;
}

Result<std::string> checkKernel(ops::Problem const& problem, ops::Kernel const& kernel, char const* tacticName,
                                Workers& workers)
{
    return Checker(problem).check(problem, kernel, tacticName, workers);
}

} // namespace tw::tune
