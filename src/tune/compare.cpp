// SPDX-License-Identifier: Apache-2.0
// Random contents, comparison within a tolerance, copies in other formats.
#include <cmath>

#include "base/element.h"
#include "ir/signs.h"
#include "tactic/convert_format.h"
#include "tune/check.h"

namespace tw::tune {

ops::Domain domainOf(ir::Node const& node, int i)
{
    ops::Domain d;
    if (node.inputs[size_t(i)] && !isFloating(node.inputs[size_t(i)]->type))
        d = ops::Domain{-4, 4, true, false};
    if (node.op->domain)
        node.op->domain(node, i, d);
    if (ir::Value const* const v = node.inputs[size_t(i)]; v && isQuantized(v->type) && ir::Signs().isNonNegative(*v))
        d.lo = std::max(d.lo, 0.);
    return d;
}

ops::Tolerance toleranceOf(ir::Node const& node, DataType type)
{
    return node.op->tolerance ? node.op->tolerance(node, type) : ops::Tolerance::forType(type);
}

namespace {

// splitmix64: a few cycles for each number.
struct Random
{
    uint64_t state;
    uint64_t next()
    {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
};

} // namespace

void fillRandom(TensorRef const& t, ops::Domain const& domain, uint64_t seed)
{
    Random random{seed};
    bool const whole = domain.integer || !isFloating(t.type);
    // Large tensors repeat a part, whose length is a prime: elements that an index error mistakes for each other
    // differ.
    constexpr int64_t kPeriod = 4194301;
    int64_t const count = std::min(t.count(), kPeriod);
    auto repeat = [&] {
        int64_t const bytes = t.count() * sizeOf(t.type);
        for (int64_t done = count * sizeOf(t.type); done < bytes; done *= 2)
            std::memcpy(t.as<char>() + done, t.data, size_t(std::min(done, bytes - done)));
    };
    if (isFullFloat(t.type) && !whole) {
        float* out = t.as<float>();
        double const step = (domain.hi - domain.lo) * 0x1p-53;
        for (int64_t i = 0; i < count; ++i)
            out[i] = float(domain.lo + double(random.next() >> 11) * step);
        return repeat();
    }
    if (isNarrowFloat(t.type) && !whole && !domain.ascending) {
        float const lo = float(domain.lo), step = float((domain.hi - domain.lo) * 0x1p-24);
        withNarrow(t.type, [&](auto element) {
            auto* out = t.as<decltype(element)>();
            for (int64_t i = 0; i < count; ++i)
                storeElement(out[i], lo + float(random.next() >> 40) * step);
        });
        return repeat();
    }
    for (int64_t i = 0; i < count; ++i) {
        double const u = double(random.next() >> 11) * 0x1p-53;
        double const v =
            whole ? std::floor(domain.lo + u * (domain.hi - domain.lo + 1)) : domain.lo + u * (domain.hi - domain.lo);
        if (domain.ascending)
            t.set(i, i == 0 ? 0 : t.get(i - 1) + v);
        else
            t.set(i, t.type == DataType::kBool ? double(random.next() & 1) : v);
    }
    repeat();
}

std::string compare(TensorRef const& got, std::span<TensorRef const> wants, ops::Tolerance const& tolerance,
                    std::vector<bool> const& wanted)
{
    TensorRef const& want = wants[0];
    if (got.type != want.type || !(got.dims == want.dims))
        return fmt::format("got {}{}, want {}{}", nameOf(got.type), got.dims.str(), nameOf(want.type), want.dims.str());
    auto compared = [&](int64_t i) { return wanted.empty() || wanted[size_t(i)]; };
    int64_t const count = want.count();
    std::vector<double> largest(wants.size(), tolerance.scale);
    for (size_t w = 0; w < wants.size(); ++w)
        for (int64_t i = 0; i < count; ++i)
            if (compared(i) && std::isfinite(wants[w].get(i)))
                largest[w] = std::max(largest[w], std::fabs(wants[w].get(i)));
    auto isEqual = [&](double a, double b, double most) {
        if (a == b || (std::isnan(a) && std::isnan(b)))
            return true;
        if (!isFloating(want.type))
            return want.type != DataType::kBool && std::fabs(a - b) <= tolerance.integers;
        return std::isfinite(a) && std::isfinite(b) &&
               std::fabs(a - b) <= tolerance.absolute * most + tolerance.relative * std::fabs(b);
    };
    for (int64_t i = 0; i < count; ++i) {
        if (!compared(i))
            continue;
        double const a = got.get(i);
        bool isOne = false;
        for (size_t w = 0; w < wants.size() && !isOne; ++w)
            isOne = isEqual(a, wants[w].get(i), largest[w]);
        if (isOne)
            continue;
        std::string why = fmt::format("element {}: got {}, want ", i, a);
        for (size_t w = 0; w < wants.size(); ++w)
            why += fmt::format("{}{}", w ? " or, step by step, " : "", wants[w].get(i));
        return fmt::format("{} (of a scale of {})", why, largest[0]);
    }
    return {};
}

std::string compare(TensorRef const& got, TensorRef const& want, ops::Tolerance const& tolerance,
                    std::vector<bool> const& wanted)
{
    return compare(got, std::span(&want, 1), tolerance, wanted);
}

Result<std::vector<TensorRef>> inFormats(std::span<TensorRef const> tensors, std::span<ops::TensorSpec const> specs,
                                         std::vector<Tensor>& storage, Workers& workers)
{
    std::vector<TensorRef> out(tensors.begin(), tensors.end());
    for (size_t i = 0; i < out.size(); ++i) {
        if (!specs[i].present || specs[i].format == out[i].format)
            continue;
        storage.emplace_back(out[i].type, out[i].dims, specs[i].format);
        if (!storage.back().data())
            return failedAllocation("no memory for a tensor in format " + std::string(nameOf(specs[i].format)));
        TensorRef const& copy = storage.back().ref();
        std::memset(copy.data, 0xff, size_t(copy.sizeBytes())); // gaps hold NaN: who reads them shows
        if (out[i].data)
            ops::convertFormat(out[i], copy, workers);
        out[i] = copy;
    }
    return out;
}

} // namespace tw::tune
