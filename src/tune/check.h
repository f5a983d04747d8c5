// SPDX-License-Identifier: Apache-2.0
// Check before choose: random inputs that suit an op, and comparison with its reference.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "ir/op_def.h"
#include "tactic/domain.h"
#include "tactic/rounded_factors.h"
#include "tactic/tactic.h"
#include "tune/options.h"

namespace tw::tune {

class CheckSet;
class DeviceTensors;
class Phases;

// What input i of the node may hold.
ops::Domain domainOf(ir::Node const& node, int i);
ops::Tolerance toleranceOf(ir::Node const& node, DataType type);
// Deterministic for a seed.
void fillRandom(TensorRef const& t, ops::Domain const& domain, uint64_t seed);
// Empty when equal within the tolerance at the wanted elements (all, when `wanted` is empty), else where and by how
// much.
std::string compare(TensorRef const& got, TensorRef const& want, ops::Tolerance const& tolerance,
                    std::vector<bool> const& wanted = {});

// The same with several answers, of which each element may be any.
std::string compare(TensorRef const& got, std::span<TensorRef const> wants, ops::Tolerance const& tolerance,
                    std::vector<bool> const& wanted = {});

// The tensors in the formats of the specs: copies in `storage` where they differ (without elements, if the tensor has
// no data), else the tensors themselves. An error when memory runs out.
Result<std::vector<TensorRef>> inFormats(std::span<TensorRef const> tensors, std::span<ops::TensorSpec const> specs,
                                         std::vector<Tensor>& storage, Workers& workers = serialWorkers());

// What is checked of a tactic.
struct Tried
{
    ops::Rounding rounding = ops::Rounding::kPlain;
    // It closes its op's list, whose cases prove it: that it computes in its type and not as the reference does is no
    // reason to refuse it.
    bool isPlain = false;
};

// Of a kernel that is not wrong. Both empty: everything was compared and is right.
struct Checked
{
    std::string incomparable; // why nothing could be compared: the node refuses random inputs, say
    std::string differs;      // a plain kernel's values are others than the reference's: where and by how much
    double microseconds = 0;  // of its run at the optimum, on a CPU; 0: there was none

    bool isRight() const { return incomparable.empty() && differs.empty(); }
};

// Inputs of a region and what the reference makes of them, for all of its candidates, whatever their formats. Sets of
// inputs: the problem's optimum, on small tensors with two sets of values; the same with values a hundred times larger,
// where the op takes any (what overflows inside a kernel shows); and other sizes, so that a kernel that is wrong at
// some of those that an engine may be given is refused. On a GPU the second and third set lie in memory as parts of
// wider tensors where they may (tactic/parts.h).
class Checker
{
public:
    // `problem` and `points` outlive the checker; the problem's formats do not matter. No points: the maximum, where it
    // is larger than the optimum, not very large, and not a matter of shape tensors. `workers` prepare large tensors.
    explicit Checker(ops::Problem const& problem, Workers& workers = serialWorkers(),
                     std::span<Point const> points = {}, Phases* phases = nullptr);
    ~Checker();

    // Which sets of inputs: all; the first; those behind it.
    enum class Sets
    {
        kAll,
        kFirst,
        kOthers,
    };
    // Makes all sets of inputs now; those that are not made are made when they are needed.
    void makeSets();
    int64_t bytes() const; // of the sets that are made

    // Runs the kernel, which was loaded for `problem` (the checker's, in some formats), and compares with the
    // reference: everywhere on small outputs, at sampled elements (edges and random ones) on large ones. Outputs and
    // workspace have guard bytes around them. An error: the kernel is wrong.
    Result<Checked> check(ops::Problem const& problem, ops::Kernel const& kernel, char const* tacticName,
                          Workers& workers, Tried const& tried = {}, Sets sets = Sets::kAll);

    // Tensors at the optimum in the problem's formats, to time kernels with; valid as long as the checker.
    struct Buffers
    {
        std::vector<TensorRef> inputs, outputs;
        std::shared_ptr<DeviceTensors> onDevice; // CUDA: the same there
    };
    Result<Buffers const*> buffers(ops::Problem const& problem);

private:
    struct Set;
    class Guarded;
    struct Formatted;
    Set& set(size_t which);
    Result<Formatted*> formatted(Set& set, ops::Problem const& problem);
    Result<void> fillInputs(Formatted& f, CheckSet const& values, ops::Problem const& problem);
    Result<Checked> checkSet(Set& set, ops::Problem const& problem, ops::Kernel const& kernel, char const* tacticName,
                             Workers& workers, Tried const& tried);

    ops::Problem const& problem_;
    Workers& workers_;
    std::vector<Point> maximum_; // when no points were given
    std::span<Point const> points_;
    Phases* phases_;
    std::vector<std::unique_ptr<Set>> sets_; // at the optimum, then at the points
};

// One kernel alone.
Result<Checked> checkKernel(ops::Problem const& problem, ops::Kernel const& kernel, char const* tacticName,
                            Workers& workers = serialWorkers(), std::span<Point const> points = {});

} // namespace tw::tune
