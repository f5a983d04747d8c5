// SPDX-License-Identifier: Apache-2.0
#include "tune/check.h"

#include <algorithm>
#include <optional>

#include "device/large_pages.h"
#include "tactic/parts.h"
#include "tune/bench.h"
#include "tune/check_set.h"
#include "tune/device_run.h"
#include "tune/phases.h"

namespace tw::tune {

namespace {

constexpr int64_t kGuard = 256;             // bytes on either side of outputs and workspaces
constexpr int64_t kMostBytes = 64 << 20;    // of the inputs and outputs at maximum shapes
constexpr int64_t kCompareInputs = 1 << 24; // inputs up to so many bytes must be the same after a run
constexpr unsigned char kUnwritten = DeviceRun::kUnwritten;

enum Which : size_t // sets; after them those of the points
{
    kOptimum,
    kAgain,  // other values
    kStress, // larger ones
    kPoints,
};

// The maximum of a problem that nobody knows more of.
std::vector<Point> maximumOf(ops::Problem const& p)
{
    int64_t bytes = 0;
    bool isLarger = false;
    Point point{"at the maximum shapes", {}};
    for (auto const* specs : {&p.inputs, &p.outputs})
        for (ops::TensorSpec const& t : *specs) {
            if (t.contents.data || t.maxDims.rank != t.dims.rank)
                return {};
            isLarger = isLarger || (t.present && !(t.dims == t.maxDims));
            bytes += t.present && !t.constant ? TensorRef{t.type, t.maxDims, nullptr}.sizeBytes() : 0;
            if (specs == &p.inputs)
                point.inputs.push_back({t.maxDims, {}});
        }
    return isLarger && bytes <= kMostBytes ? std::vector<Point>{std::move(point)} : std::vector<Point>{};
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

// Elements with guard bytes on both sides.
class Checker::Guarded
{
public:
    explicit Guarded(int64_t bytes) : bytes_(bytes), store_((bytes + 2 * kGuard + 3) / 4) {}
    bool ok() const { return store_.data() != nullptr; }
    void* data() const { return reinterpret_cast<char*>(store_.data()) + kGuard; }
    void clear() const { std::memset(store_.data(), kUnwritten, size_t(bytes_ + 2 * kGuard)); }
    bool isIntact() const
    {
        auto const* p = reinterpret_cast<unsigned char const*>(store_.data());
        auto isOurs = [](unsigned char c) { return c == kUnwritten; };
        return std::all_of(p, p + kGuard, isOurs) && std::all_of(p + kGuard + bytes_, p + 2 * kGuard + bytes_, isOurs);
    }

private:
    int64_t bytes_;
    device::PackedFloats store_;
};

struct Checker::Formatted
{
    ops::Formats formats;
    std::vector<Tensor> storage;
    std::optional<AlikeImages> images;
    std::vector<Guarded> guarded; // of each output
    Buffers buffers;
};

struct Checker::Set
{
    CheckSet values;
    bool asParts = false; // on a GPU: channels-last tensors lie there as parts of wider ones
    std::optional<Error> error;
    std::vector<std::unique_ptr<Formatted>> formatted;
};

Checker::Checker(ops::Problem const& problem, Workers& workers, std::span<Point const> points, Phases* phases)
    : problem_(problem), workers_(workers), maximum_(points.empty() ? maximumOf(problem) : std::vector<Point>{}),
      points_(points.empty() ? std::span<Point const>(maximum_) : points), phases_(phases),
      sets_(kPoints + points_.size())
{}
Checker::~Checker() = default;

Checker::Set& Checker::set(size_t which)
{
    std::unique_ptr<Set>& s = sets_[which];
    if (!s) {
        Phases::Scope const phase(phases_, "inputs and reference");
        s = std::make_unique<Set>();
        s->asParts = which == kAgain || which == kStress;
        using Values = CheckSet::Values;
        auto const done = which >= kPoints ? s->values.fill(problem_, points_[which - kPoints])
                                           : s->values.fill(problem_, which == kAgain    ? Values::kOther
                                                                      : which == kStress ? Values::kLarger
                                                                                         : Values::kFirst);
        if (!done.ok())
            s->error = done.error();
    }
    return *s;
}

void Checker::makeSets()
{
    for (size_t which = 0; which < sets_.size(); ++which)
        set(which);
}

int64_t Checker::bytes() const
{
    int64_t sum = 0;
    for (auto const& s : sets_)
        sum += s ? s->values.bytes() : 0;
    return sum;
}

// In the problem's formats; whole ones for a CPU. Those of a GPU are whole there (DeviceTensors): here their elements are the
// originals' where they consist of images.
Result<void> Checker::fillInputs(Formatted& f, CheckSet const& values, ops::Problem const& problem)
{
    std::vector<TensorRef> linear = values.inputs();
    f.images = values.images() ? std::optional(*values.images()) : std::nullopt;
    auto const repeat = [&](TensorRef& t) -> Result<void> {
        TensorRef const originals = t;
        t.dims[0] = f.images->count();
        f.storage.emplace_back(t.type, t.dims, t.format);
        t.data = f.storage.back().data();
        if (!t.data)
            return noMemory();
        f.images->repeat(originals, t, workers_);
        return {};
    };
    for (size_t i = 0; f.images && i < linear.size(); ++i)
        if (Format const format = problem.inputs[i].format;
            f.images->hasImages(i) && format != Format::kLinear && channelAxis(format, linear[i].dims.rank) < 1) {
            TW_TRY(repeat(linear[i])); // its images do not lie one behind the other
            f.images->drop(i);
        }
    TW_ASSIGN(f.buffers.inputs, inFormats(linear, problem.inputs, f.storage, workers_));
    for (size_t i = 0; f.images && i < linear.size(); ++i) {
        TensorRef& t = f.buffers.inputs[i];
        if (f.images->hasImages(i) && problem.target.cuda)
            t.dims[0] = f.images->count();
        else if (f.images->hasImages(i))
            TW_TRY(repeat(t));
    }
    return {};
}

Result<Checker::Formatted*> Checker::formatted(Set& set, ops::Problem const& problem)
{
    ops::Formats const formats = ops::formatsOf(problem);
    for (auto const& f : set.formatted)
        if (f->formats == formats)
            return f.get();
    auto f = std::make_unique<Formatted>();
    f->formats = formats;
    TW_TRY(fillInputs(*f, set.values, problem));
    for (size_t i = 0; i < set.values.outputs().size(); ++i) {
        TensorRef out = set.values.outputs()[i];
        out.format = problem.outputs[i].format;
        bool const isList = problem.target.cuda && i == 0 && !set.values.samples().empty();
        f->guarded.emplace_back(isList ? int64_t(set.values.samples().size()) * sizeOf(out.type) : out.sizeBytes());
        if (!f->guarded.back().ok())
            return noMemory();
        out.data = f->guarded.back().data();
        f->buffers.outputs.push_back(out);
    }
    if (problem.target.cuda)
        TW_SET(f->buffers.onDevice, DeviceTensors::create(problem, f->buffers.inputs, f->buffers.outputs, set.asParts,
                                                          f->images ? &*f->images : nullptr));
    set.formatted.push_back(std::move(f));
    return set.formatted.back().get();
}

Result<Checked> Checker::checkSet(Set& set, ops::Problem const& problem, ops::Kernel const& kernel,
                                  char const* tacticName, Workers& workers, Tried const& tried)
{
    if (set.error)
        return *set.error;
    CheckSet& values = set.values;
    if (!values.isThere() || !values.incomparable().empty())
        return Checked{values.incomparable(), {}};
    auto wrong = [&](std::string const& how) {
        return Error{ErrorCode::kFailedComputation, "tactic " + std::string(tacticName) +
                                                        " computes wrong values for layer '" + problem.node->name +
                                                        "': " + how};
    };
    TW_ASSIGN(Formatted * f, formatted(set, problem));
    for (Guarded const& g : f->guarded)
        if (!problem.target.cuda) // there the device's memory counts
            g.clear();
    std::vector<TensorRef> const& inputs = f->buffers.inputs;
    std::vector<TensorRef> outputs = f->buffers.outputs;
    Guarded const workspace(problem.target.cuda ? 0 : kernel.workspaceBytes(inputs, outputs));
    if (!workspace.ok())
        return noMemory();
    workspace.clear();
    std::vector<std::string> before;
    for (TensorRef const& x : inputs)
        before.emplace_back(x.data && !problem.target.cuda && x.sizeBytes() <= kCompareInputs
                                ? std::string(x.as<char>(), size_t(x.sizeBytes()))
                                : std::string());
    uint64_t state = kSeed;
    Checked checked;
    TensorRef list; // of a GPU's output 0 the samples alone
    if (problem.target.cuda) {
        if (!values.samples().empty())
            list = {outputs[0].type, {int64_t(values.samples().size())}, outputs[0].data};
        TW_ASSIGN(auto onDevice, DeviceRun::create(problem, kernel, f->buffers.onDevice));
        TW_TRY(onDevice->run(outputs, values.samples(), list, &state));
    } else {
        TW_ASSIGN(auto prepared, kernel.prepare(inputs, outputs));
        ops::RunArgs args{inputs, outputs, workspace.data(), &state, &workers};
        args.prepared = prepared.get();
        double const begin = microsecondsOf(workers);
        TW_TRY(kernel.run(args));
        checked.microseconds = microsecondsOf(workers) - begin;
    }
    for (size_t i = 0; i < f->guarded.size(); ++i)
        if (!problem.target.cuda && !f->guarded[i].isIntact())
            return wrong(fmt::format("it writes beyond output {}", i));
    if (!workspace.isIntact())
        return wrong("it writes beyond its workspace");
    for (size_t i = 0; i < inputs.size(); ++i)
        if (!before[i].empty() && !isSame(inputs[i], before[i]))
            return wrong(fmt::format("it writes to its input {}", i));
    for (size_t i = 0; i < outputs.size(); ++i) {
        bool const isList = i == 0 && list.data;
        std::string const why = values.compare(i, isList ? list : outputs[i], tried.rounding, isList);
        if (why.empty())
            continue;
        if (!tried.isPlain || !values.mayRound(i, outputs[i]))
            return wrong(fmt::format("output {}, {}", i, why));
        checked.differs = fmt::format("output {} ('{}'), {}", i, problem.node->outputs[i]->name, why);
    }
    return checked;
}

Result<Checked> Checker::check(ops::Problem const& problem, ops::Kernel const& kernel, char const* tacticName,
                               Workers& workers, Tried const& tried, Sets sets)
{
    if (problem.outputs.empty()) // an assertion: there is nothing to compare
        return Checked();
    auto where = [&](size_t which) -> std::string {
        return which >= kPoints    ? points_[which - kPoints].where
               : which == kOptimum ? std::string()
                                   : std::string(which == kStress ? "on large values" : "on other values") +
                                         (problem.target.cuda && ops::hasParts(problem)
                                              ? ", channels-last tensors as parts of wider ones"
                                              : "");
    };
    Checked first;
    if (sets != Sets::kOthers)
        TW_SET(first, checkSet(set(kOptimum), problem, kernel, tacticName, workers, tried));
    if (!first.incomparable.empty() || sets == Sets::kFirst)
        return first;
    for (size_t which = kAgain; which < sets_.size(); ++which) {
        auto checked = checkSet(set(which), problem, kernel, tacticName, workers, tried);
        if (!checked.ok())
            return std::move(checked).error().in(where(which));
        if (first.differs.empty() && !checked->differs.empty())
            first.differs = where(which) + ": " + checked->differs;
    }
    return first;
}

Result<Checker::Buffers const*> Checker::buffers(ops::Problem const& problem)
{
    Set& s = set(kOptimum);
    if (s.error)
        return *s.error;
    if (s.values.outputs().empty())
        return invalidArgument(s.values.incomparable());
    TW_ASSIGN(Formatted const* f, formatted(s, problem));
    return &f->buffers;
}

Result<Checked> checkKernel(ops::Problem const& problem, ops::Kernel const& kernel, char const* tacticName,
                            Workers& workers, std::span<Point const> points)
{
    return Checker(problem, workers, points).check(problem, kernel, tacticName, workers);
}

} // namespace tw::tune
