// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>

#include "device/cuda/target.h"
#include "kernels/cuda/common/launch.h"
#include "kernels/cuda/common/source.h"
#include "kernels/cuda/rates/rates.h"
#include "tune/rates.h"

namespace tw::tune {

namespace {

constexpr int kDeviceRuns = 4; // the fastest counts; the first loads code
// With as much again for what is written, more than the L2 of GPUs of so many multiprocessors holds (H200: 66 MiB, L2
// of 50).
constexpr int64_t kCopyBytesPerMultiprocessor = 512 << 10;

// Microseconds of the fastest run.
Result<double> leastOf(std::shared_ptr<cuda::Device const> const& device,
                       std::function<Result<void>(CUstream_st*)> const& run)
{
    TW_ASSIGN(auto const stream, cuda::Stream::create(device));
    TW_ASSIGN(auto const timer, cuda::Timer::create(device));
    double least = INFINITY;
    for (int i = 0; i < kDeviceRuns; ++i) {
        TW_TRY(timer->begin(stream->handle()));
        TW_TRY(run(stream->handle()));
        TW_TRY(timer->end(stream->handle()));
        TW_ASSIGN(double const milliseconds, timer->milliseconds());
        least = std::min(least, milliseconds * 1000);
    }
    return least;
}

Result<double> copyRate(cuda::Target const& target)
{
    int64_t const bytes = target.multiprocessors * kCopyBytesPerMultiprocessor;
    cuda::Driver const& driver = target.device->driver();
    cuda::Current const current(*target.device);
    TW_ASSIGN(cuda::Buffer const from, cuda::Buffer::allocate(target.device, bytes));
    TW_ASSIGN(cuda::Buffer const to, cuda::Buffer::allocate(target.device, bytes));
    TW_CUDA(driver, cuMemsetD8Async(cuda::addressOf(from.data()), 1, size_t(bytes), nullptr));
    TW_TRY(driver.check(driver.cuStreamSynchronize(nullptr), "cuStreamSynchronize"));
    TW_ASSIGN(double const us, leastOf(target.device, [&](CUstream_st* stream) -> Result<void> {
                  TW_CUDA(driver, cuMemcpyDtoDAsync(cuda::addressOf(to.data()), cuda::addressOf(from.data()),
                                                    size_t(bytes), stream));
                  return {};
              }));
    return us > 0 ? 2.0 * double(bytes) / us : 0;
}

cuda::RateOf rateOf(DataType operands, bool tf32)
{
    return isNarrowFloat(operands) ? cuda::RateOf::kF16 : tf32 ? cuda::RateOf::kTf32 : cuda::RateOf::kF32;
}

Result<std::shared_ptr<cuda::Compiled const>> compiled(cuda::RateKernel const& kernel, cuda::Target const& target)
{
    TW_ASSIGN(cuda::Compiler * compiler, target.compiler->get());
    return compiler->compile(cuda::kRateKernel, cuda::withIncludes(kernel.source), target.architecture);
}

Result<double> productRate(cuda::Target const& target, cuda::RateOf what)
{
    auto const kernel = cuda::rateKernel(what, target.capability);
    if (!kernel)
        return 0.0;
    TW_ASSIGN(auto const code, compiled(*kernel, target));
    cuda::Current const current(*target.device);
    TW_ASSIGN(auto const module, cuda::Module::load(target.device, code->cubin));
    TW_ASSIGN(CUfunc_st * function, module->function(cuda::kRateKernel, kernel->sharedBytes));
    cuda::LaunchGeometry geometry;
    geometry.grid = int64_t(target.multiprocessors) * kernel->blocksPerMultiprocessor;
    geometry.block = kernel->threads;
    geometry.sharedBytes = kernel->sharedBytes;
    TW_ASSIGN(cuda::Buffer const y,
              cuda::Buffer::allocate(target.device, geometry.grid * geometry.block * int64_t(sizeof(float))));
    void* address = y.data();
    int repeats = kernel->repeats;
    void* params[] = {&address, &repeats};
    TW_ASSIGN(double const us, leastOf(target.device, [&](CUstream_st* stream) {
                  return cuda::launchKernel(target.device->driver(), function, geometry, params, false, stream);
              }));
    return us > 0 ? kernel->operations * double(repeats) * double(geometry.grid) / us : 0;
}

} // namespace

double cudaCopyRate(cuda::Target const& target)
{
    auto const rate = copyRate(target);
    return rate.ok() ? *rate : 0;
}

double cudaProductRate(cuda::Target const& target, DataType operands, bool tf32)
{
    auto const rate = productRate(target, rateOf(operands, tf32));
    return rate.ok() ? *rate : 0;
}

void compileProductRate(cuda::Target const& target, DataType operands, bool tf32)
{
    if (auto const kernel = cuda::rateKernel(rateOf(operands, tf32), target.capability))
        (void)compiled(*kernel, target).ok(); // a failure shows when it is measured
}

} // namespace tw::tune
