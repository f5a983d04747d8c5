// SPDX-License-Identifier: Apache-2.0
// RefContext: what reference.cpp of an op works on. References are plain loops in double or exact integers; they call
// no kernel and no other op's code.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "ir/graph.h"

namespace tw::ops {

class RefContext
{
public:
    using RegionRunner =
        std::function<Result<std::vector<Tensor>>(ir::Graph const& region, std::vector<TensorRef> const& inputs)>;

    RefContext(ir::Node const& node, std::vector<TensorRef> inputs, std::vector<TensorRef> outputs)
        : node_(node), inputs_(std::move(inputs)), outputs_(std::move(outputs))
    {}

    ir::Node const& node() const { return node_; }
    template <class A>
    A const& attrs() const
    {
        return node_.attrsAs<A>();
    }
    int inputCount() const { return int(inputs_.size()); }
    // An optional input that is not given has null data.
    bool has(int i) const { return i < int(inputs_.size()) && inputs_[i].data != nullptr; }
    TensorRef const& in(int i) const { return inputs_[i]; }
    TensorRef const& out(int i = 0) const { return outputs_[i]; }
    int outputCount() const { return int(outputs_.size()); }

    // The tuner compares large outputs at sampled points only: an expensive reference (convolution, matrix product)
    // skips elements of output 0 that nobody asked for. All others may ignore this.
    bool wantsAll() const { return wanted_.empty(); }
    bool wants(int64_t element) const { return wanted_.empty() || wanted_[size_t(element)]; }
    // `elements`: the same as positions, in order, for references that go from one to the next; they may be unknown.
    void setWanted(std::vector<bool> wanted, std::vector<int64_t> elements = {})
    {
        wanted_ = std::move(wanted);
        elements_ = std::move(elements);
    }
    std::span<int64_t const> wantedElements() const { return elements_; } // empty: all, or unknown
    // Calls f(element) for each.
    template <class F>
    void forEachWanted(F const& f) const
    {
        for (int64_t element : elements_)
            f(element);
        for (int64_t i = 0, n = elements_.empty() ? out().count() : 0; i < n; ++i)
            if (wants(i))
                f(i);
    }

    // Data-dependent sizes: the op shrinks an output below the bound it was given (elements stay dense in the new
    // dims).
    void setOutputDims(int i, Extents const& dims) { outputs_[i].dims = dims; }

    // Runs region r of the node on concrete inputs.
    Result<std::vector<Tensor>> runRegion(int r, std::vector<TensorRef> const& inputs) const
    {
        return runRegion_(*node_.regions[size_t(r)], inputs);
    }
    void setRegionRunner(RegionRunner runner) { runRegion_ = std::move(runner); }

    // A loop that runs longer than this is an error: graphs may be untrusted.
    int64_t maxTrips = 1'000'000;

    // State of random ops: advances with every run of the same context.
    uint64_t* randomState = nullptr;

    Error error(std::string const& what) const; // "gather 'g': <what>", kFailedExecution
    template <class... Args>
    Error error(fmt::format_string<Args...> what, Args&&... args) const
    {
        return error(fmt::format(what, std::forward<Args>(args)...));
    }

private:
    ir::Node const& node_;
    std::vector<TensorRef> inputs_;
    std::vector<TensorRef> outputs_;
    std::vector<bool> wanted_;
    std::vector<int64_t> elements_;
    RegionRunner runRegion_;
};

// The elements of an input as doubles, read once where all of the output is wanted: a sample needs few of them.
class Numbers
{
public:
    Numbers(RefContext const& ctx, int input) : t_(ctx.has(input) ? ctx.in(input) : TensorRef())
    {
        constexpr int64_t kMost = int64_t(1) << 24; // 128 MiB of doubles
        if (!ctx.wantsAll() || !t_.data || t_.count() > kMost)
            return;
        read_.resize(size_t(t_.count()));
        for (int64_t i = 0; i < t_.count(); ++i)
            read_[size_t(i)] = t_.get(i);
    }
    double operator[](int64_t i) const { return read_.empty() ? t_.get(i) : read_[size_t(i)]; }
    std::span<double const> read() const { return read_; } // empty: they are read one by one

private:
    TensorRef t_;
    std::vector<double> read_;
};

} // namespace tw::ops
