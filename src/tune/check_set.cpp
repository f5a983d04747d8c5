// SPDX-License-Identifier: Apache-2.0
#include "tune/check_set.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <unordered_set>
#include <vector>

#include "base/extents.h"
#include "interp/interp.h"
#include "ir/graph.h"
#include "ir/op_def.h"
#include "tactic/convert_format.h"
#include "tactic/reference.h"
#include "tactic/rounded_factors.h"
#include "tune/alike_rows.h"
#include "tune/check.h"

namespace tw::tune {

// Which elements of large outputs a check compares.
constexpr int64_t kCompareAll = 4096; // outputs up to this size are compared everywhere

// The first, second, middle, last but one and last index along every dimension, in all combinations, and `random`
// elements in between, in order; every element of small tensors (empty).
std::vector<int64_t> sample(Extents const& dims, int64_t random);

// Whether every element of a body's output needs that element alone of what its first expensive node gives: then the
// others need not be computed.
bool mayBeSampled(ir::Graph const& body);

namespace {

constexpr int64_t kSamples = 160; // random elements of large outputs
constexpr int64_t kFewSamples = 32;
constexpr double kLargerScale = 100; // exp() overflows from 89 on
constexpr int64_t kMostLargerBytes = 256 << 20;
constexpr int64_t kMostStepwiseBytes = 64 << 20;   // of outputs whose nodes must be run on all elements
constexpr int64_t kMostMovedElements = 1 << 24;    // of inputs in which elements are looked for
constexpr uint64_t kSeedOfPoints = kSeed + 10'000; // after those of the optimum

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

int64_t bytesAtOptimum(ops::Problem const& p)
{
    int64_t bytes = 0;
    for (auto const* specs : {&p.inputs, &p.outputs})
        for (ops::TensorSpec const& t : *specs)
            bytes += t.present && !t.constant ? TensorRef{t.type, t.dims, nullptr}.sizeBytes() : 0;
    return bytes;
}

bool hasHalf(ir::Graph const& body)
{
    return std::ranges::any_of(body.values(), [](auto const& v) { return isNarrowFloat(v->type); });
}

// Elements of `t`, wherever its format puts them.
Tensor gather(TensorRef const& t, std::vector<int64_t> const& elements)
{
    Tensor out(t.type, {int64_t(elements.size())});
    for (size_t k = 0; k < elements.size(); ++k)
        out.ref().set(int64_t(k), t.get(t.place(elements[k])));
    return out;
}

} // namespace

Error noMemory()
{
    return failedAllocation("no memory to check tactics");
}

TensorRef CheckSet::make(DataType type, Extents const& dims)
{
    storage_.emplace_back(type, dims);
    return storage_.back().ref();
}

Result<void> CheckSet::addInput(ops::Problem const& p, size_t i, Extents const& dims, TensorRef const& contents,
                                Values values, uint64_t seed)
{
    ops::TensorSpec const& spec = p.inputs[i];
    fixed_.push_back(spec.constant || contents.data);
    if (!spec.present) {
        inputs_.emplace_back();
    } else if (spec.constant) {
        inputs_.push_back(TensorRef{spec.type, spec.dims, const_cast<void*>(spec.constant->data())});
    } else if (contents.data) {
        inputs_.push_back(contents);
    } else {
        inputs_.push_back(make(spec.type, dims));
        if (!inputs_.back().data)
            return noMemory();
        ops::Domain domain = domainOf(*p.node, int(i));
        if (values == Values::kLarger && isFloating(spec.type)) {
            domain.lo *= kLargerScale;
            domain.hi *= kLargerScale;
        }
        fillRandom(inputs_.back(), domain, seed + i);
    }
    return {};
}

Result<void> CheckSet::fill(ops::Problem const& p, Values values)
{
    bool const isSmall =
        std::ranges::all_of(p.outputs, [](ops::TensorSpec const& t) { return t.dims.volume() <= kCompareAll; });
    if ((values == Values::kLarger && (!takesAnyValues(*p.node) || bytesAtOptimum(p) > kMostLargerBytes)) ||
        (values == Values::kOther && !isSmall))
        return {};
    uint64_t const seed = kSeed + uint64_t(values) * 1000;
    for (size_t i = 0; i < p.inputs.size(); ++i)
        TW_TRY(addInput(p, i, p.inputs[i].dims, p.inputs[i].contents, values, seed));
    slack_ = values == Values::kLarger ? kSlack * kLargerScale : kSlack;
    return refer(p, values == Values::kFirst ? kSamples : kFewSamples, seed);
}

Result<void> CheckSet::fill(ops::Problem const& p, Point const& point)
{
    for (size_t i = 0; i < p.inputs.size(); ++i)
        TW_TRY(addInput(p, i, point.inputs[i].dims, point.inputs[i].contents, Values::kFirst, kSeedOfPoints));
    return refer(p, kFewSamples, kSeedOfPoints);
}

Result<void> CheckSet::refer(ops::Problem const& p, int64_t randomSamples, uint64_t seed)
{
    node_ = p.node;
    isThere_ = true;
    auto const shapes = interp::inferConcrete(*node_, inputs_);
    if (!shapes.ok()) {
        incomparable_ = shapes.error().message;
        return {};
    }
    for (auto const& s : *shapes) {
        outputs_.push_back(make(s.type, s.dims));
        want_.push_back(make(s.type, s.dims));
        if (!outputs_.back().data || !want_.back().data)
            return noMemory();
    }
    uint64_t state = kSeed;
    if (auto const alike = AlikeRows::of(*node_, inputs_, want_, fixed_, seed)) {
        alike->repeat(inputs_);
        if (auto done = alike->refer(inputs_, want_, &state); !done.ok())
            incomparable_ = done.error().message;
        return {};
    }
    if (node_->op->reference ? !AlikeRows::isOf(*node_) : mayBeSampled(*node_->body))
        samples_ = sample(want_[0].dims, randomSamples);
    if (!samples_.empty())
        wanted_.assign(size_t(want_[0].count()), false);
    for (int64_t i : samples_)
        wanted_[size_t(i)] = true;
    if (node_->op->reference) {
        std::vector<Extents> dims;
        auto run = [&]() -> Result<void> {
            ops::RefContext ctx(*node_, inputs_, want_);
            ctx.randomState = &state;
            ctx.setWanted(wanted_, samples_);
            TW_TRY(node_->op->reference(ctx));
            dims.clear();
            for (size_t i = 0; i < want_.size(); ++i)
                dims.push_back(ctx.out(int(i)).dims);
            return {};
        };
        auto done = run();
        if (done.ok() && !samples_.empty() && dims[0] != want_[0].dims) {
            // Data decide the size: positions in the largest tensor mean nothing in what there is.
            samples_.clear();
            wanted_.clear();
            done = run();
        }
        if (!done.ok()) {
            incomparable_ = done.error().message;
            return {};
        }
        for (size_t i = 0; i < want_.size(); ++i)
            want_[i].dims = dims[i];
        return {};
    }
    interp::Options options; // a fused node: what it replaced
    options.randomState = &state;
    options.wanted = wanted_;
    auto reference = interp::run(*node_->body, inputs_, options);
    if (!reference.ok()) {
        incomparable_ = reference.error().message;
        return {};
    }
    for (size_t i = 0; i < want_.size(); ++i) {
        storage_.push_back(std::move((*reference)[i]));
        want_[i] = storage_.back().ref();
    }
    return {};
}

CheckSet::References const& CheckSet::stepwise()
{
    if (stepwise_)
        return *stepwise_;
    stepwise_.emplace();
    ir::Graph const* body = node_->body.get();
    if (!body)
        return *stepwise_;
    interp::Options options;
    uint64_t state = kSeed;
    options.randomState = &state;
    if (mayBeSampled(*body))
        options.wanted = wanted_;
    else if (want_[0].sizeBytes() > kMostStepwiseBytes)
        return *stepwise_;
    for (bool widens : {false, true}) {
        if (widens && !hasHalf(*body))
            continue;
        options.widensHalf = widens;
        if (auto done = interp::run(*body, inputs_, options); done.ok() && done->size() == want_.size())
            stepwise_->push_back(std::move(*done));
    }
    return *stepwise_;
}

std::string CheckSet::compareWith(std::vector<TensorRef> const& wants, TensorRef const& out, size_t i,
                                  ops::Rounding rounding)
{
    ops::Tolerance tolerance = ops::toleranceFor(rounding, toleranceOf(*node_, out.type));
    tolerance.absolute *= slack_;
    tolerance.relative *= slack_;
    if (i == 0 && !samples_.empty() && out.dims == wants[0].dims) {
        Tensor const got = gather(out, samples_);
        std::vector<Tensor> lists;
        std::vector<TensorRef> refs;
        for (TensorRef const& w : wants) {
            lists.push_back(gather(w, samples_));
            refs.push_back(lists.back().ref());
        }
        std::string const why = tune::compare(got.ref(), refs, tolerance);
        return why.empty() ? why : fmt::format("of {} samples {}", samples_.size(), why);
    }
    TensorRef got = out;
    if (out.format != Format::kLinear) {
        got = outputs_[i];
        got.dims = out.dims;
        ops::convertFormat(out, got);
    }
    return tune::compare(got, wants, tolerance, i == 0 ? wanted_ : std::vector<bool>{});
}

std::string CheckSet::compare(size_t i, TensorRef const& got, ops::Rounding rounding)
{
    std::vector<TensorRef> wants{want_[i]};
    std::string const why = compareWith(wants, got, i, rounding);
    if (why.empty())
        return why;
    for (std::vector<Tensor> const& reference : stepwise())
        if (reference[i].type() == want_[i].type && reference[i].dims() == want_[i].dims)
            wants.push_back(reference[i].ref());
    return wants.size() > 1 ? compareWith(wants, got, i, rounding) : why;
}

bool CheckSet::mayRound(size_t i, TensorRef const& got) const
{
    return isFloating(got.type) && got.type == want_[i].type && got.dims == want_[i].dims &&
           !onlyMoves(want_[i], i == 0 ? wanted_ : std::vector<bool>{});
}

bool CheckSet::onlyMoves(TensorRef const& want, std::vector<bool> const& wanted) const
{
    std::unordered_set<double> known{0.0}; // -0 is equal
    bool hasNan = false;
    for (TensorRef const& x : inputs_) {
        if (!x.data || x.type != want.type)
            continue;
        if (x.count() > kMostMovedElements)
            return false;
        for (int64_t k = 0; k < x.count(); ++k) {
            known.insert(x.get(k));
            hasNan = hasNan || std::isnan(x.get(k));
        }
    }
    for (int64_t k = 0; k < want.count(); ++k) {
        if (!wanted.empty() && !wanted[size_t(k)])
            continue;
        double const v = want.get(k);
        if (std::isnan(v) ? !hasNan : !known.contains(v))
            return false;
    }
    return true;
}

namespace {

constexpr int64_t kEdges = 100; // about so many elements at the edges

} // namespace

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
        std::ranges::sort(along);
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
    std::ranges::sort(at);
    at.erase(std::unique(at.begin(), at.end()), at.end());
    return at;
}

bool mayBeSampled(ir::Graph const& body)
{
    return std::ranges::count_if(body.nodes, [](auto const& n) { return !n->op->isElementwise; }) <= 1;
}

} // namespace tw::tune
