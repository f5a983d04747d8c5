// SPDX-License-Identifier: Apache-2.0
#include "api/builder/calibration_batches.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "device/cuda/target.h"

namespace tw::api {

Result<bool> CalibrationBatches::next(std::vector<calibrate::Network::Input>& inputs)
{
    std::vector<char const*> names;
    std::vector<void*> addresses;
    for (calibrate::Network::Input const& in : inputs)
        if (!in.isShapeTensor)
            names.push_back(in.name.c_str());
    addresses.resize(names.size());
    if (!calibrator_.getBatch(addresses.data(), names.data(), int32_t(names.size())))
        return false;
    std::string const what = fmt::format("calibration batch {}", batch_++);
    size_t at = 0;
    for (calibrate::Network::Input& in : inputs) {
        if (in.isShapeTensor)
            continue;
        void const* const from = addresses[at++];
        if (!from && in.memory.count() > 0)
            return invalidArgument("{}: getBatch() sets no address for input '{}'", what, in.name);
        if (auto done = take(in, from); !done.ok())
            return std::move(done).error().in(what);
    }
    return true;
}

Result<void> CalibrationBatches::take(calibrate::Network::Input& input, void const* from) const
{
    TensorRef const to = input.memory.ref();
    if (to.count() == 0)
        return {};
    if (!isQuantized(to.type))
        return copy(to.data, from, size_t(to.sizeBytes()));
    Tensor numbers(DataType::kFloat, to.dims);
    if (!numbers.data())
        return failedAllocation("no memory for the numbers of input '" + input.name + "'");
    TW_TRY(copy(numbers.data(), from, size_t(numbers.ref().sizeBytes())));
    for (int64_t i = 0; i < to.count(); ++i) {
        float const x = numbers.ref().as<float>()[i];
        if (!(x >= -128 && x <= 127))
            return invalidArgument("element {} of INT8 input '{}' is {}; its samples are FP32 numbers from -128 to 127",
                                   i, input.name, x);
        to.as<int8_t>()[i] = int8_t(std::nearbyint(x));
    }
    return {};
}

Result<void> CalibrationBatches::copy(void* to, void const* from, size_t bytes) const
{
    constexpr unsigned kHostMemory = 1; // pinned
    unsigned kind = 0;
    std::optional<cuda::Current> current;
    if (gpu_)
        current.emplace(*gpu_->device);
    cuda::Driver const* const driver = gpu_ ? &gpu_->device->driver() : nullptr;
    // Of addresses that it does not know, which are plain host memory, the driver gives an error.
    if (!driver ||
        driver->cuPointerGetAttribute(&kind, cuda::kPointerMemoryType, cuda::addressOf(from)) != cuda::kSuccess ||
        kind == kHostMemory) {
        std::memcpy(to, from, bytes);
        return {};
    }
    // On the stream that clients copy by, if they name none.
    TW_CUDA(*driver, cuMemcpyDtoHAsync(to, cuda::addressOf(from), bytes, nullptr));
    TW_CUDA(*driver, cuStreamSynchronize(nullptr));
    return {};
}

} // namespace tw::api
