// SPDX-License-Identifier: Apache-2.0
#include "tune/check.h"

#include <cmath>
#include <random>

#include "interp/interp.h"
#include "ops/convert_format.h"
#include "ops/reference.h"
#include "tune/device_run.h"

namespace tw::tune {

ops::Domain domainOf(ir::Node const& node, int i)
{
    ops::Domain d;
    if (node.inputs[size_t(i)] && !isFloating(node.inputs[size_t(i)]->type))
        d = ops::Domain{-4, 4, true, false};
    if (node.op->domain)
        node.op->domain(node, i, d);
    return d;
}

ops::Tolerance toleranceOf(ir::Node const& node, DataType type)
{
    return node.op->tolerance ? node.op->tolerance(node, type) : ops::Tolerance::forType(type);
}

void fillRandom(TensorRef const& t, ops::Domain const& domain, uint64_t seed)
{
    std::mt19937_64 random(seed);
    bool const whole = domain.integer || !isFloating(t.type);
    int64_t const count = t.count();
    for (int64_t i = 0; i < count; ++i) {
        double const u = double(random() >> 11) * 0x1p-53;
        double const v =
            whole ? std::floor(domain.lo + u * (domain.hi - domain.lo + 1)) : domain.lo + u * (domain.hi - domain.lo);
        t.set(i, t.type == DataType::kBool ? double(random() & 1) : v);
    }
}

std::string compare(TensorRef const& got, TensorRef const& want, ops::Tolerance const& tolerance,
                    std::vector<bool> const& wanted)
{
    if (got.type != want.type || !(got.dims == want.dims))
        return std::string("got ") + nameOf(got.type) + got.dims.str() + ", want " + nameOf(want.type) +
               want.dims.str();
    auto compared = [&](int64_t i) { return wanted.empty() || wanted[size_t(i)]; };
    double maxAbs = 0;
    int64_t const count = want.count();
    for (int64_t i = 0; i < count; ++i)
        if (compared(i) && std::isfinite(want.get(i)))
            maxAbs = std::max(maxAbs, std::fabs(want.get(i)));
    for (int64_t i = 0; i < count; ++i) {
        if (!compared(i))
            continue;
        double const a = got.get(i), b = want.get(i);
        bool equal = a == b || (std::isnan(a) && std::isnan(b));
        if (!equal && isFloating(want.type) && std::isfinite(a) && std::isfinite(b))
            equal = std::fabs(a - b) <= tolerance.absolute * maxAbs + tolerance.relative * std::fabs(b);
        if (!equal)
            return "element " + std::to_string(i) + ": got " + std::to_string(a) + ", want " + std::to_string(b) +
                   " (max |want| " + std::to_string(maxAbs) + ")";
    }
    return {};
}

Result<std::vector<TensorRef>> inFormats(std::span<TensorRef const> tensors, std::span<ops::TensorSpec const> specs,
                                         std::vector<Tensor>& storage)
{
    std::vector<TensorRef> out(tensors.begin(), tensors.end());
    for (size_t i = 0; i < out.size(); ++i) {
        if (!specs[i].present || specs[i].format == out[i].format)
            continue;
        storage.emplace_back(out[i].type, out[i].dims, specs[i].format);
        if (!storage.back().data())
            return Error{ErrorCode::kFailedAllocation,
                         "no memory for a tensor in format " + std::string(nameOf(specs[i].format))};
        TensorRef const& copy = storage.back().ref();
        std::memset(copy.data, 0xff, size_t(copy.sizeBytes())); // gaps hold NaN: who reads them shows
        if (out[i].data)
            ops::convertFormat(out[i], copy);
        out[i] = copy;
    }
    return out;
}

namespace {

constexpr int64_t kCompareAll = 4096; // outputs up to this size are compared everywhere
constexpr int64_t kSamples = 256;     // random elements of larger ones
constexpr uint64_t kSeed = 20221107;  // any constant: builds are reproducible

// Ends, and random elements in between.
std::vector<bool> sample(int64_t count)
{
    if (count <= kCompareAll)
        return {};
    std::vector<bool> wanted(size_t(count), false);
    for (int64_t i = 0; i < 16; ++i)
        wanted[size_t(i)] = wanted[size_t(count - 1 - i)] = true;
    std::mt19937_64 random(kSeed);
    for (int64_t i = 0; i < kSamples; ++i)
        wanted[size_t(random() % uint64_t(count))] = true;
    return wanted;
}

} // namespace

Result<std::string> checkKernel(ops::Problem const& problem, ops::Kernel const& kernel, char const* tacticName,
                                Workers& workers)
{
    ir::Node const& node = *problem.node;
    std::vector<Tensor> storage;
    std::vector<TensorRef> inputs;
    for (size_t i = 0; i < problem.inputs.size(); ++i) {
        ops::TensorSpec const& spec = problem.inputs[i];
        if (!spec.present) {
            inputs.emplace_back();
        } else if (spec.constant) {
            inputs.push_back(TensorRef{spec.type, spec.dims, const_cast<void*>(spec.constant->data())});
        } else if (spec.contents.data) {
            inputs.push_back(spec.contents);
        } else {
            storage.emplace_back(spec.type, spec.dims);
            if (!storage.back().data())
                return Error{ErrorCode::kFailedAllocation, "no memory to check tactic " + std::string(tacticName)};
            fillRandom(storage.back().ref(), domainOf(node, int(i)), kSeed + i);
            inputs.push_back(storage.back().ref());
        }
    }
    // Random inputs may be none that the node accepts (indices, bounds of a slice): then there is nothing to compare.
    auto const inferred = interp::inferConcrete(node, inputs);
    if (!inferred.ok())
        return inferred.error().message;
    auto const& shapes = *inferred;
    std::vector<Tensor> wantStorage, gotStorage;
    std::vector<TensorRef> want, got;
    for (auto const& s : shapes) {
        wantStorage.emplace_back(s.type, s.dims);
        gotStorage.emplace_back(s.type, s.dims);
        if (!wantStorage.back().data() || !gotStorage.back().data())
            return Error{ErrorCode::kFailedAllocation, "no memory to check tactic " + std::string(tacticName)};
        want.push_back(wantStorage.back().ref());
        got.push_back(gotStorage.back().ref());
        std::memset(got.back().data, 0xcd, size_t(got.back().sizeBytes())); // unwritten elements must show
    }
    uint64_t refState = kSeed, kernelState = kSeed;
    std::vector<bool> const wanted = sample(want[0].count());
    if (node.op->reference) {
        ops::RefContext ctx(node, inputs, want);
        ctx.randomState = &refState;
        ctx.setWanted(wanted);
        if (auto done = node.op->reference(ctx); !done.ok())
            return done.error().message;
        for (size_t i = 0; i < want.size(); ++i)
            want[i].dims = ctx.out(int(i)).dims;
    } else { // a fused node: what it replaced
        interp::Options options;
        options.randomState = &refState;
        options.wanted = wanted;
        auto reference = interp::run(*node.body, inputs, options);
        if (!reference.ok())
            return reference.error().message;
        wantStorage = std::move(*reference);
        for (size_t i = 0; i < want.size(); ++i)
            want[i] = wantStorage[i].ref();
    }
    std::vector<Tensor> copies;
    TW_ASSIGN(auto kernelInputs, inFormats(inputs, problem.inputs, copies));
    TW_ASSIGN(auto kernelOutputs, inFormats(got, problem.outputs, copies));
    if (problem.cuda) {
        TW_ASSIGN(auto onDevice, DeviceRun::create(problem, kernel, kernelInputs, kernelOutputs));
        TW_TRY(onDevice->run(kernelOutputs, &kernelState));
    } else {
        Tensor workspace(DataType::kInt8, {kernel.workspaceBytes(kernelInputs, kernelOutputs)});
        if (!workspace.data())
            return Error{ErrorCode::kFailedAllocation, "no workspace to check tactic " + std::string(tacticName)};
        TW_ASSIGN(auto prepared, kernel.prepare(kernelInputs, kernelOutputs));
        ops::RunArgs args{kernelInputs, kernelOutputs, workspace.data(), &kernelState};
        args.prepared = prepared.get();
        args.workers = &workers;
        TW_TRY(kernel.run(args));
    }
    for (size_t i = 0; i < got.size(); ++i) {
        got[i].dims = kernelOutputs[i].dims;
        if (kernelOutputs[i].data != got[i].data)
            ops::convertFormat(kernelOutputs[i], got[i]);
    }
    for (size_t i = 0; i < want.size(); ++i)
        if (std::string why =
                compare(got[i], want[i], toleranceOf(node, want[i].type), i == 0 ? wanted : std::vector<bool>{});
            !why.empty())
            return Error{ErrorCode::kFailedComputation, "tactic " + std::string(tacticName) +
                                                            " computes wrong values for layer '" + node.name +
                                                            "', output " + std::to_string(i) + ", " + why};
    return std::string();
}

} // namespace tw::tune
