// SPDX-License-Identifier: Apache-2.0
#include "ops/nms/nms_params.h"
#include "ops/nms/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::nms {

namespace {

constexpr int kThreads = 512;
constexpr int32_t kNothing = 0;

CudaSource sourceOf(Problem const& problem)
{
    auto storage = [&](size_t i) {
        bool const isGiven = i < problem.inputs.size() && problem.inputs[i].present;
        return cuda::storageOf(isGiven ? problem.inputs[i].type : DataType::kFloat);
    };
    bool const center = problem.node->attrsAs<Attrs>().format == BoxFormat::kCenterSizes;
    return {.text = cuda::type("B", storage(kBoxes)) + cuda::type("S", storage(kScores)) +
                    cuda::type("O", storage(kOverlap)) + cuda::type("L", storage(kLeast)) +
                    cuda::flag("kCenterSizes", center) + cuda::include("ops/nms/nms.cuh"),
            .names = {"nms_select", "nms_rows"},
            .wide = isWide(problem)};
}

// Bytes of the lists and sizes of all groups, which stand in front of the flags.
int64_t listBytes(Extents const& scores)
{
    return scores[0] * scores[2] * (scores[1] + 1) * int64_t(sizeof(int32_t));
}

Params paramsOf(int64_t limit, RunArgs const& args)
{
    auto dataOf = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i].data : nullptr; };
    TensorRef const &boxes = args.inputs[kBoxes], &scores = args.inputs[kScores];
    auto* lists = static_cast<int32_t*>(args.workspace);
    return {.boxes = boxes.data,
            .scores = scores.data,
            .most = dataOf(kMost),
            .overlap = dataOf(kOverlap),
            .least = dataOf(kLeast),
            .rows = args.outputs[0].data,
            .total = args.outputs[1].data,
            .lists = lists,
            .sizes = lists + scores.dims.volume(),
            .gone = static_cast<std::byte*>(args.workspace) + listBytes(scores.dims),
            .items = uint32_t(scores.dims[0]),
            .count = uint32_t(scores.dims[1]),
            .classes = uint32_t(scores.dims[2]),
            .boxClasses = uint32_t(boxes.dims.rank == 4 ? boxes.dims[2] : 1),
            .limit = uint64_t(limit)};
}

// Rows do not depend on how many there are; the run waits for that number alone.
Result<void> run(int64_t limit, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const &scores = args.inputs[kScores], &total = args.outputs[1];
    cuda::Driver const& driver = launch.device().driver();
    int64_t const groups = scores.dims[0] * scores.dims[2];
    int32_t found = 0;
    if (groups == 0) {
        TW_CUDA(driver, cuMemcpyHtoDAsync(cuda::addressOf(total.data), &kNothing, sizeof(kNothing), launch.stream()));
    } else {
        Params const p = paramsOf(limit, args);
        TW_TRY(launch(0, groups, kThreads, p));
        TW_TRY(launch(1, groups, kThreads, p));
        TW_CUDA(driver, cuMemcpyDtoHAsync(&found, cuda::addressOf(total.data), sizeof(found), launch.stream()));
        TW_CUDA(driver, cuStreamSynchronize(launch.stream()));
    }
    args.outputs[0].dims = {found, 3};
    return {};
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    return kernelsOf(
        sourceOf(problem),
        [limit = problem.node->attrsAs<Attrs>().limit](CudaLaunch const& launch, RunArgs& args) {
            return run(limit, launch, args);
        },
        [](std::span<TensorRef const> in, std::span<TensorRef const>) {
            return listBytes(in[kScores].dims) + in[kScores].dims.volume();
        });
}

constexpr CudaTactic kPlain{"nms_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::nms
