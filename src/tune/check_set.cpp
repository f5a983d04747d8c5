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
constexpr size_t kProbes = 8;        // places of images where the reference shows that they do not depend on each other
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

int64_t CheckSet::bytes() const
{
    int64_t sum = 0;
    for (Tensor const& t : storage_)
        sum += t.ref().sizeBytes();
    return sum;
}

Result<void> CheckSet::fillInput(size_t i, Extents const& dims, Values values, uint64_t seed)
{
    inputs_[i] = make(inputs_[i].type, dims);
    if (!inputs_[i].data)
        return noMemory();
    ops::Domain domain = domainOf(*node_, int(i));
    if (values == Values::kLarger && isFloating(inputs_[i].type)) {
        domain.lo *= kLargerScale;
        domain.hi *= kLargerScale;
    }
    fillRandom(inputs_[i], domain, seed + i);
    return {};
}

Result<void> CheckSet::fill(ops::Problem const& p, std::span<InputAt const> given, Values values, int64_t randomSamples,
                            uint64_t seed)
{
    node_ = p.node;
    isThere_ = true;
    for (size_t i = 0; i < given.size(); ++i)
        if (p.inputs[i].present && p.node->inputs[i] && given[i].dims.rank != p.node->inputs[i]->rank()) {
            incomparable_ = fmt::format("input {} has no size: the layer is skipped there", i);
            return {};
        }
    std::vector<size_t> large; // and ours: sizes of outputs do not depend on what they hold
    for (size_t i = 0; i < given.size(); ++i) {
        ops::TensorSpec const& spec = p.inputs[i];
        fixed_.push_back(spec.constant || given[i].contents.data);
        inputs_.emplace_back();
        if (!spec.present)
            continue;
        inputs_[i] = spec.constant ? TensorRef{spec.type, spec.dims, const_cast<void*>(spec.constant->data())}
                     : given[i].contents.data ? given[i].contents
                                              : TensorRef{spec.type, given[i].dims, nullptr};
        if (fixed_[i])
            continue;
        if (inputs_[i].count() > ir::kMaxContent)
            large.push_back(i);
        else
            TW_TRY(fillInput(i, given[i].dims, values, seed));
    }
    auto const shapes = interp::inferConcrete(*node_, inputs_);
    if (!shapes.ok()) {
        incomparable_ = shapes.error().message;
        return {};
    }
    for (auto const& s : *shapes)
        outputs_.push_back(TensorRef{s.type, s.dims, nullptr});
    images_ = AlikeImages::of(*node_, inputs_, outputs_, fixed_, seed);
    if (images_) {
        for (size_t i : large)
            TW_TRY(fillInput(i, images_->hasImages(i) ? AlikeImages::few(given[i].dims) : given[i].dims, values, seed));
        TW_ASSIGN(bool const areAlike, referImages(randomSamples));
        if (areAlike)
            return {};
        images_.reset();
    }
    for (size_t i : large)
        TW_TRY(fillInput(i, given[i].dims, values, seed));
    return refer(seed, randomSamples);
}

Result<void> CheckSet::fill(ops::Problem const& p, Values values)
{
    bool const isSmall =
        std::ranges::all_of(p.outputs, [](ops::TensorSpec const& t) { return t.dims.volume() <= kCompareAll; });
    if ((values == Values::kLarger && (!takesAnyValues(*p.node) || bytesAtOptimum(p) > kMostLargerBytes)) ||
        (values == Values::kOther && !isSmall))
        return {};
    slack_ = values == Values::kLarger ? kSlack * kLargerScale : kSlack;
    auto const given = mapped<InputAt>(p.inputs, [](ops::TensorSpec const& t) { return InputAt{t.dims, t.contents}; });
    return fill(p, given, values, values == Values::kFirst ? kSamples : kFewSamples, kSeed + uint64_t(values) * 1000);
}

Result<void> CheckSet::fill(ops::Problem const& p, Point const& point)
{
    return fill(p, point.inputs, Values::kFirst, kFewSamples, kSeedOfPoints);
}

Result<std::vector<Tensor>> CheckSet::run(std::vector<TensorRef> const& inputs, std::vector<bool> const& wanted) const
{
    uint64_t state = kSeed;
    interp::Options options;
    options.randomState = &state;
    if (node_->op->reference || mayBeSampled(*node_->body))
        options.wanted = wanted;
    options.takesAnyBatch = true;
    return interp::runNode(*node_, inputs, options);
}

// The reference's answers for the originals, and that an image of the output is a matter of that image of the inputs alone:
// in another order they give the same, and so does one of them beside itself.
Result<bool> CheckSet::referImages(int64_t randomSamples)
{
    constexpr int64_t kOriginals = AlikeImages::kOriginals;
    Extents const &whole = outputs_[0].dims, few = AlikeImages::few(whole);
    int64_t const image = whole.volume(1, whole.rank), element = sizeOf(outputs_[0].type);
    auto const samples = sample(whole, randomSamples);
    if (samples.empty())
        return false;
    std::vector<int64_t> probes; // positions in an image
    for (size_t i = 0; i < samples.size(); i += samples.size() / kProbes + 1)
        probes.push_back(samples[i] % image);
    std::vector<int64_t> at; // of the samples, in the originals
    std::vector<bool> probed(size_t(kOriginals * image), false);
    for (int64_t n = 0; n < kOriginals; ++n)
        for (int64_t const p : probes)
            probed[size_t(n * image + p)] = true;
    std::vector<bool> wanted = probed;
    for (int64_t const s : samples) {
        at.push_back(images_->original(s / image) * image + s % image);
        wanted[size_t(at.back())] = true;
    }
    auto first = run(inputs_, wanted);
    if (!first.ok() || first->size() != 1 || (*first)[0].dims() != few)
        return false;
    // With original (n * step + 1) % kOriginals as image n.
    auto const givesTheSame = [&](int64_t step) -> Result<bool> {
        auto const from = [&](int64_t n) { return (n * step + 1) % kOriginals; };
        std::vector<Tensor> storage;
        std::vector<TensorRef> in = inputs_;
        for (size_t i = 0; i < in.size(); ++i) {
            if (!images_->hasImages(i))
                continue;
            TensorRef const original = in[i];
            storage.emplace_back(original.type, original.dims);
            in[i] = storage.back().ref();
            if (!in[i].data)
                return noMemory();
            int64_t const size = original.sizeBytes() / kOriginals;
            for (int64_t n = 0; n < kOriginals; ++n)
                std::memcpy(in[i].as<char>() + n * size, original.as<char>() + from(n) * size, size_t(size));
        }
        auto const other = run(in, probed);
        if (!other.ok() || (*other)[0].dims() != few)
            return false;
        char const *const a = (*other)[0].ref().as<char>(), *const b = (*first)[0].ref().as<char>();
        for (int64_t n = 0; n < kOriginals; ++n)
            for (int64_t const p : probes)
                if (std::memcmp(a + (n * image + p) * element, b + (from(n) * image + p) * element, size_t(element)) !=
                    0)
                    return false;
        return true;
    };
    for (int64_t const step : {1, 0}) {
        TW_ASSIGN(bool const isSame, givesTheSame(step));
        if (!isSame)
            return false;
    }
    storage_.push_back(std::move((*first)[0]));
    want_.push_back(storage_.back().ref());
    wanted_ = std::move(wanted);
    samples_ = samples;
    wantedAt_ = std::move(at);
    return true;
}

Result<void> CheckSet::refer(uint64_t seed, int64_t randomSamples)
{
    for (TensorRef const& t : outputs_) {
        want_.push_back(make(t.type, t.dims));
        if (!want_.back().data)
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
    wantedAt_ = samples_;
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
            wantedAt_.clear();
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
    options.takesAnyBatch = images_.has_value();
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
                                  ops::Rounding rounding, bool isList)
{
    ops::Tolerance tolerance = ops::toleranceFor(rounding, toleranceOf(*node_, out.type));
    tolerance.absolute *= slack_;
    tolerance.relative *= slack_;
    if (i == 0 && !samples_.empty() && (isList || out.dims == outputs_[0].dims)) {
        Tensor const got = isList ? Tensor() : gather(out, samples_);
        std::vector<Tensor> lists;
        std::vector<TensorRef> refs;
        for (TensorRef const& w : wants) {
            lists.push_back(gather(w, wantedAt_));
            refs.push_back(lists.back().ref());
        }
        std::string const why = tune::compare(isList ? out : got.ref(), refs, tolerance);
        return why.empty() ? why : fmt::format("of {} samples {}", samples_.size(), why);
    }
    if (out.format == Format::kLinear)
        return tune::compare(out, wants, tolerance, i == 0 ? wanted_ : std::vector<bool>{});
    Tensor const linear(out.type, out.dims);
    if (!linear.data())
        return noMemory().message;
    ops::convertFormat(out, linear.ref());
    return tune::compare(linear.ref(), wants, tolerance, i == 0 ? wanted_ : std::vector<bool>{});
}

std::string CheckSet::compare(size_t i, TensorRef const& got, ops::Rounding rounding, bool isList)
{
    std::vector<TensorRef> wants{want_[i]};
    std::string const why = compareWith(wants, got, i, rounding, isList);
    if (why.empty())
        return why;
    for (std::vector<Tensor> const& reference : stepwise())
        if (reference[i].type() == want_[i].type && reference[i].dims() == want_[i].dims)
            wants.push_back(reference[i].ref());
    return wants.size() > 1 ? compareWith(wants, got, i, rounding, isList) : why;
}

bool CheckSet::mayRound(size_t i, TensorRef const& got) const
{
    return isFloating(got.type) && got.type == want_[i].type && (images_ || got.dims == want_[i].dims) &&
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
