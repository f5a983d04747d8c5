// SPDX-License-Identifier: Apache-2.0
// Calls the interfaces that Python classes implement as the library would, for those that no test here makes it call.
#include <ctime>
#include <string>
#include <vector>

#include <NvInfer.h>
#include <nanobind/nanobind.h>

namespace nb = nanobind;
using namespace nvinfer1;

namespace {

nb::object numberOf(void const* address)
{
    return nb::steal(PyLong_FromVoidPtr(const_cast<void*>(address)));
}

// Every method once: [address of allocate, reallocate, whether deallocate did, address after free].
nb::list allocator(IGpuAllocator& self, uint64_t size, uint64_t alignment)
{
    nb::list seen;
    void* const memory = self.allocate(size, alignment, 1U << int(AllocatorFlag::kRESIZABLE));
    seen.append(numberOf(memory));
    seen.append(numberOf(self.reallocate(memory, alignment, 2 * size)));
    seen.append(self.deallocate(memory));
    self.free(memory);
    return seen;
}

// As the builder asks: the cache first, then batches until there are none, then the result.
nb::dict calibrate(IInt8Calibrator& self, nb::list names)
{
    nb::dict seen;
    std::size_t length = 77;
    void const* const cache = self.readCalibrationCache(length);
    seen["cache"] = cache ? nb::object(nb::bytes(cache, length)) : nb::none();
    seen["length"] = length;
    seen["batch size"] = self.getBatchSize();
    seen["algorithm"] = self.getAlgorithm();
    std::vector<std::string> texts;
    for (nb::handle name : names)
        texts.emplace_back(nb::borrow<nb::str>(name).c_str());
    std::vector<char const*> list;
    for (std::string const& text : texts)
        list.push_back(text.c_str());
    nb::list batches;
    for (int i = 0; i < 10; ++i) {
        std::vector<void*> bindings(list.size());
        bool isThere = false;
        {
            nb::gil_scoped_release const release;
            isThere = self.getBatch(bindings.data(), list.data(), int32_t(list.size()));
        }
        if (!isThere)
            break;
        nb::list addresses;
        for (void* address : bindings)
            addresses.append(numberOf(address));
        batches.append(addresses);
    }
    seen["batches"] = batches;
    {
        std::string const result = "TRT-8503-result";
        self.writeCalibrationCache(result.data(), result.size());
    }
    return seen;
}

nb::dict legacy(IInt8LegacyCalibrator& self)
{
    nb::dict seen;
    seen["quantile"] = self.getQuantile();
    seen["cutoff"] = self.getRegressionCutoff();
    std::size_t length = 77;
    seen["histogram"] = numberOf(self.readHistogramCache(length));
    seen["length"] = length;
    self.writeHistogramCache("histogram", 9);
    return seen;
}

nb::list recorder(IErrorRecorder& self)
{
    nb::list seen;
    seen.append(self.incRefCount());
    seen.append(self.reportError(ErrorCode::kINVALID_STATE, "not now \xff"));
    seen.append(self.getNbErrors());
    seen.append(self.getErrorCode(0));
    seen.append(self.getErrorDesc(0));
    seen.append(self.hasOverflowed());
    self.clear();
    seen.append(self.decRefCount());
    return seen;
}

// Seconds of this thread for count runs in C++, for what a call from Python adds.
double enqueueSeconds(IExecutionContext& self, int count)
{
    auto const now = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
    };
    double const start = now();
    for (int i = 0; i < count; ++i)
        self.enqueueV3(nullptr);
    return now() - start;
}

} // namespace

NB_MODULE(callback_probe, m)
{
    m.def("allocator", &allocator);
    m.def("calibrate", &calibrate);
    m.def("legacy", &legacy);
    m.def("recorder", &recorder);
    m.def("enqueue_seconds", &enqueueSeconds);
}
