// SPDX-License-Identifier: Apache-2.0
// The deprecated helpers of NvUtils.h.
#include <cstring>
#include <vector>

#include "NvUtils.h"
#include "api/network/network.h"
#include "api/report.h"

using namespace tw;
using namespace tw::api;

namespace nvinfer1::utils {

namespace {

// Runs a body; what it refuses is reported to the process-wide logger, as these functions have none.
template <class Body>
bool run(Body&& body) noexcept
{
    Reporter reporter(getLogger());
    return guarded<bool>(reporter, false, [&]() -> Result<bool> {
        TW_TRY(body());
        return true;
    });
}

Result<void> checkPermutation(int32_t const* order, int32_t count, std::string const& what)
{
    std::vector<bool> seen(size_t(count), false);
    for (int32_t i = 0; i < count; ++i) {
        if (order[i] < 0 || order[i] >= count || seen[size_t(order[i])])
            return invalidArgument("{}: entry {} is {}; the order must name each of 0..{} once", what, i, order[i],
                                   count - 1);
        seen[size_t(order[i])] = true;
    }
    return {};
}

Result<int64_t> elementBytes(nvinfer1::DataType type, std::string const& what)
{
    int const number = static_cast<int>(type);
    if (!isPublished(number))
        return invalidArgument("{}: data type {} does not exist", what, number);
    return sizeOf(toCore(type));
}

} // namespace

bool reshapeWeights(Weights const& input, int32_t const* shape, int32_t const* shapeOrder, void* data,
                    int32_t nbDims) noexcept
{
    return run([&]() -> Result<void> {
        std::string const what = "reshapeWeights";
        if (!shape || !shapeOrder || !data || !input.values)
            return invalidArgument("{}: weights, shape, order and output must not be null", what);
        if (nbDims < 1 || nbDims > Dims::MAX_DIMS)
            return invalidArgument("{}: {} dimensions; 1 to {} are possible", what, nbDims, int(Dims::MAX_DIMS));
        TW_ASSIGN(int64_t const bytes, elementBytes(input.type, what));
        TW_TRY(checkPermutation(shapeOrder, nbDims, what));
        int64_t volume = 1;
        for (int32_t i = 0; i < nbDims; ++i) {
            if (shape[i] < 1)
                return invalidArgument("{}: dimension {} is {} and must be positive", what, i, shape[i]);
            volume = ir::mulSat(volume, shape[i]);
        }
        if (volume != input.count)
            return invalidArgument("{}: the shape has {} elements, the weights {}", what, volume, input.count);
        // Output dimension i is input dimension shapeOrder[i]; stride[i] is its step in the input.
        int64_t stride[Dims::MAX_DIMS], inputStride[Dims::MAX_DIMS], extent[Dims::MAX_DIMS];
        for (int64_t i = nbDims - 1, step = 1; i >= 0; step *= shape[i], --i)
            inputStride[i] = step;
        for (int32_t i = 0; i < nbDims; ++i) {
            stride[i] = inputStride[shapeOrder[i]];
            extent[i] = shape[shapeOrder[i]];
        }
        int64_t index[Dims::MAX_DIMS] = {};
        auto const* from = static_cast<char const*>(input.values);
        auto* to = static_cast<char*>(data);
        int64_t at = 0;
        for (int64_t n = 0; n < volume; ++n) {
            std::memcpy(to + n * bytes, from + at * bytes, size_t(bytes));
            for (int32_t i = nbDims - 1; i >= 0; --i) {
                at += stride[i];
                if (++index[i] < extent[i])
                    break;
                at -= stride[i] * extent[i];
                index[i] = 0;
            }
        }
        return {};
    });
}

bool reorderSubBuffers(void* input, int32_t const* order, int32_t num, int32_t size) noexcept
{
    return run([&]() -> Result<void> {
        std::string const what = "reorderSubBuffers";
        if (!input || !order)
            return invalidArgument("{}: input and order must not be null", what);
        if (num < 1 || size < 1)
            return invalidArgument("{}: {} blocks of {} bytes; both must be positive", what, num, size);
        TW_TRY(checkPermutation(order, num, what));
        auto* data = static_cast<char*>(input);
        std::vector<char> const copy(data, data + size_t(num) * size_t(size));
        for (int32_t i = 0; i < num; ++i)
            std::memcpy(data + size_t(order[i]) * size_t(size), copy.data() + size_t(i) * size_t(size), size_t(size));
        return {};
    });
}

bool transposeSubBuffers(void* input, DataType type, int32_t num, int32_t height, int32_t width) noexcept
{
    return run([&]() -> Result<void> {
        std::string const what = "transposeSubBuffers";
        if (!input)
            return invalidArgument("{}: the input is a null pointer", what);
        if (num < 1 || height < 1 || width < 1)
            return invalidArgument("{}: {} matrices of {} x {}; all three must be positive", what, num, height, width);
        TW_ASSIGN(int64_t const bytes, elementBytes(type, what));
        int64_t const volume = int64_t(height) * width;
        if (ir::mulSat(ir::mulSat(volume, num), bytes) > INT64_MAX / 2)
            return invalidArgument("{}: the matrices are larger than memory", what);
        std::vector<char> copy(static_cast<size_t>(volume * bytes));
        for (int32_t k = 0; k < num; ++k) {
            char* matrix = static_cast<char*>(input) + k * volume * bytes;
            std::memcpy(copy.data(), matrix, copy.size());
            for (int64_t h = 0; h < height; ++h)
                for (int64_t w = 0; w < width; ++w)
                    std::memcpy(matrix + (w * height + h) * bytes, copy.data() + (h * width + w) * bytes,
                                size_t(bytes));
        }
        return {};
    });
}

} // namespace nvinfer1::utils
