// SPDX-License-Identifier: Apache-2.0
#include "tune/candidates.h"

#include <algorithm>
#include <cmath>

#include "ir/op_def.h"
#include "tactic/expected_time.h"
#include "tune/phases.h"
#include "tune/rivals.h"

namespace tw::tune {

namespace {

constexpr double kHopelessEstimate = 8; // estimates above this many times the best,
// and those of kernels that run for long on a CPU, of which each takes its time to check and to time. Of such layers of the
// networks in bench/models the fastest kernel is estimated at no more than twice the best.
constexpr double kHopelessLongEstimate = 3, kLongEstimate = 1000; // microseconds
// Kernels that run for milliseconds are estimated better yet, and a dozen of them for each layer is what a long build is made of.
constexpr double kHopelessVeryLongEstimate = 2, kVeryLongEstimate = 4000; // microseconds
constexpr size_t kMostVeryLong = 8;
// On a GPU such kernels are estimated well: of ResNet-50 at batch 256, FP16 and INT8, the fastest of each layer is within twice.
constexpr double kHopelessLongOnGpu = 2, kLongOnGpu = 50;
// Plans of cuDNN take up to a second to make, where kernels of ours are known from the layers before. It was behind in all
// 189 kinds of convolutions of four CNNs (H200, FP16); where it may be ahead its estimate says so.
constexpr double kHopelessPlan = 1.3;
constexpr double kWorthEmitting = 10;         // microseconds by estimate from which plain tactics are not tried
constexpr int64_t kMostPackedBytes = 1 << 30; // constants of all candidates together, each packs its own

int64_t workspaceAtMaximum(ops::Problem const& problem, ops::Kernel const& kernel)
{
    auto refs = [](std::vector<ops::TensorSpec> const& specs) {
        auto out = mapped<TensorRef>(specs, [&](ops::TensorSpec const& t) {
            return t.present ? TensorRef{t.type, t.maxDims, nullptr, t.format} : TensorRef{};
        });
        return out;
    };
    std::vector<TensorRef> const in = refs(problem.inputs), out = refs(problem.outputs);
    return kernel.workspaceBytes(in, out);
}

} // namespace

bool hasSizes(ops::Problem const& p)
{
    auto have = [](std::vector<ops::TensorSpec> const& specs, std::vector<ir::Value*> const& values) {
        if (specs.size() != values.size())
            return false;
        for (size_t i = 0; i < specs.size(); ++i)
            if (specs[i].present && values[i] && specs[i].dims.rank != values[i]->rank())
                return false;
        return true;
    };
    return have(p.inputs, p.node->inputs) && have(p.outputs, p.node->outputs);
}

std::vector<ops::Tactic const*> candidates(ir::Node const& node, Options const& options)
{
    std::vector<ops::Tactic const*> list;
    Permissions permits = options.permits;
    if (node.precision.byUser && isFullFloat(node.precision.value))
        permits.set(Permission::kHalfWeights, false);
    for (ops::Tactic const* t : node.op->tactics(options.backend == ops::Backend::kCuda))
        if (permits.hasAll(t->traits().needs()) && (options.sources & bitOf(t->source())))
            list.push_back(t);
    for (ops::TacticProvider const* p : options.providers)
        p->tactics(node, options.backend, list);
    return list;
}

std::vector<Candidate> collectCandidates(std::span<ops::Problem const> problems, Options const& options, Rivals& rivals)
{
    Phases::Scope const phase(options.phases, "finding candidates");
    std::vector<Candidate> list;
    ir::Node const& node = *problems[0].node;
    std::vector<ops::Tactic const*> const tactics = candidates(node, options);
    auto const own = node.op->tactics(options.backend == ops::Backend::kCuda);
    for (size_t g = 0; g < problems.size(); ++g)
        for (ops::Tactic const* t : tactics) {
            Candidate c;
            c.tactic = t;
            c.group = int(g);
            c.isPlain = !own.empty() && t == own.back();
            ops::Support const s = c.isPlain || hasSizes(problems[g])
                                       ? ops::supportsFormats(*t, problems[g])
                                       : ops::Support::no("needs sizes: the layer is skipped at the optimum");
            if (!s.ok) {
                rivals.refuse(c, s.reason, true);
                continue;
            }
            for (ops::Config const& config : t->configs(problems[g])) {
                Candidate one;
                one.tactic = t;
                one.group = c.group;
                one.isPlain = c.isPlain;
                one.config = config;
                one.estimate = ops::expectedTime(*t, problems[g], config);
                list.push_back(std::move(one));
            }
        }
    return list;
}

std::vector<Candidate> prune(std::vector<Candidate> order, std::span<ops::Problem const> problems,
                             std::vector<Candidate>& reserve, Rivals& rivals, int mostCandidates)
{
    double best = INFINITY, bestOwn = INFINITY;
    for (Candidate const& c : order)
        if (c.estimate > 0) {
            best = std::min(best, c.estimate);
            bestOwn = c.tactic->source() == ops::Source::kOwn ? std::min(bestOwn, c.estimate) : bestOwn;
        }
    int64_t const packed = packedBytes(problems[0]) + 1;
    bool const onGpu = problems[0].target.cuda != nullptr,
               isLong = std::isfinite(best) && best >= (onGpu ? kLongOnGpu : kLongEstimate),
               isVeryLong = !onGpu && isLong && best >= kVeryLongEstimate;
    size_t const wanted = std::min<size_t>(size_t(std::max(mostCandidates, 2)), isVeryLong ? kMostVeryLong : SIZE_MAX);
    size_t const most = std::clamp<size_t>(size_t(kMostPackedBytes / packed), 2, wanted);
    double const hopeless = (!isLong      ? kHopelessEstimate
                             : onGpu      ? kHopelessLongOnGpu
                             : isVeryLong ? kHopelessVeryLongEstimate
                                          : kHopelessLongEstimate) *
                            best;
    size_t const mostOfAll = mostCandidates < kMostCandidates ? most : SIZE_MAX;
    std::vector<size_t> count(problems.size(), 0);
    std::vector<Candidate> list;
    std::ranges::stable_sort(order, [](Candidate const& a, Candidate const& b) {
        return (a.estimate > 0 ? a.estimate : INFINITY) < (b.estimate > 0 ? b.estimate : INFINITY);
    });
    for (Candidate& c : order) {
        bool const isOver = count[size_t(c.group)] >= most || list.size() >= mostOfAll;
        if (c.isPlain && c.estimate <= 0 && (isOver || (std::isfinite(best) && best >= kWorthEmitting))) {
            reserve.push_back(std::move(c));
            continue;
        }
        bool const isHopelessPlan = c.tactic->source() == ops::Source::kCudnn && c.estimate > kHopelessPlan * bestOwn;
        if (c.estimate > hopeless || isHopelessPlan || isOver || ++count[size_t(c.group)] > most) {
            rivals.refuse(c, fmt::format("estimated at {} us, the best at {} us", c.estimate, best));
            continue;
        }
        list.push_back(std::move(c));
    }
    return list;
}

int64_t packedBytes(ops::Problem const& problem)
{
    int64_t bytes = 0;
    for (ops::TensorSpec const& t : problem.inputs)
        bytes += t.constant ? int64_t(t.constant->sizeBytes()) : 0;
    return bytes;
}

namespace {

void makeImage(Candidate& c, ops::Problem const& p)
{
    auto image = c.tactic->build(p, c.config);
    if (image.ok())
        c.image = std::move(*image);
    else
        c.refusal = image.error().message;
}

void makeKernel(Candidate& c, ops::Problem const& p, int64_t mostWorkspace)
{
    if (!c.refusal.empty())
        return;
    auto kernel = c.tactic->load(p, c.config, c.image);
    if (!kernel.ok()) {
        c.refusal = kernel.error().message;
        c.lacksMemory = kernel.error().code == ErrorCode::kFailedAllocation;
        return;
    }
    c.kernel = std::move(*kernel);
    int64_t const needed = c.isPlain ? 0 : workspaceAtMaximum(p, *c.kernel);
    c.isTooLarge = needed > mostWorkspace;
    if (c.isTooLarge)
        c.refusal = fmt::format("it needs a workspace of {} bytes, the limit is {}", needed, mostWorkspace);
}

} // namespace

std::vector<Candidate> build(std::vector<Candidate> list, std::span<ops::Problem const> problems,
                             Options const& options)
{
    Phases::Scope const phase(options.phases, "making kernels");
    auto problemOf = [&](Candidate const& c) -> ops::Problem const& { return problems[size_t(c.group)]; };
    auto const count = int64_t(list.size());
    bool const isCuda = problems[0].target.cuda != nullptr;
    options.buildWorkers->run(count, [&](int64_t i, int) {
        Candidate& c = list[size_t(i)];
        makeImage(c, problemOf(c));
        if (!isCuda)
            makeKernel(c, problemOf(c), options.workspaceBytes);
    });
    for (Candidate& c : list) // a CUDA context belongs to the calling thread
        if (isCuda)
            makeKernel(c, problemOf(c), options.workspaceBytes);
    return list;
}

} // namespace tw::tune
