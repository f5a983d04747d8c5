// SPDX-License-Identifier: Apache-2.0
// Calibrators are Python classes; the library calls them while an engine is built.
#include <cstring>

#include <nanobind/stl/vector.h>

#include "callback.h"
#include "module.h"

namespace tw::python {

using namespace nvinfer1;

namespace {

template <class Base>
class PythonCalibrator : public Base
{
public:
    int32_t getBatchSize() const noexcept override
    {
        return callRequired<Base>(*this, "get_batch_size", int32_t(0),
                                  [](nb::object const& size) { return nb::cast<int32_t>(size); });
    }

    bool getBatch(void** bindings, char const** names, int32_t count) noexcept override
    {
        return withPython("get_batch", false, [&] {
            nb::list list;
            for (int32_t i = 0; i < count; ++i)
                list.append(names[i]);
            return callRequired<Base>(
                *this, "get_batch", false,
                [&](nb::object const& batch) {
                    if (batch.is_none() || nb::len(batch) == 0)
                        return false;
                    std::vector<void*> addresses;
                    if (!readAddresses(batch, addresses))
                        throw nb::type_error("get_batch() must return a list of addresses, one for each name, or None");
                    if (addresses.size() < size_t(count))
                        throw nb::value_error(("get_batch() returned " + std::to_string(addresses.size()) +
                                               " addresses for " + std::to_string(count) + " inputs")
                                                  .c_str());
                    std::memcpy(bindings, addresses.data(), size_t(count) * sizeof(void*));
                    return true;
                },
                list);
        });
    }

    void const* readCalibrationCache(std::size_t& length) noexcept override
    {
        length = 0;
        return callRequired<Base>(*this, "read_calibration_cache", static_cast<void const*>(nullptr),
                                  [&](nb::object const& bytes) -> void const* {
                                      cache_ = Buffer();
                                      if (bytes.is_none())
                                          return nullptr;
                                      if (!cache_.open(bytes))
                                          throw nb::python_error();
                                      length = cache_.size();
                                      return length ? cache_.data() : nullptr;
                                  });
    }

    void writeCalibrationCache(void const* bytes, std::size_t length) noexcept override
    {
        withPython("write_calibration_cache", 0, [&] {
            // A copy: Python may keep the view for longer than the library keeps the bytes.
            nb::bytes const copy(bytes, length);
            nb::object const view = nb::steal(PyMemoryView_FromObject(copy.ptr()));
            return callRequired<Base>(*this, "write_calibration_cache", 0, &takeNothing, view);
        });
    }

private:
    Buffer cache_; // what readCalibrationCache() gave last
};

class PythonAnyCalibrator final : public PythonCalibrator<IInt8Calibrator>
{
public:
    CalibrationAlgoType getAlgorithm() noexcept override
    {
        return callRequired<IInt8Calibrator>(
            *this, "get_algorithm", CalibrationAlgoType::kENTROPY_CALIBRATION_2,
            [](nb::object const& algorithm) { return nb::cast<CalibrationAlgoType>(algorithm); });
    }
};

class PythonLegacyCalibrator final : public PythonCalibrator<IInt8LegacyCalibrator>
{
public:
    double getQuantile() const noexcept override
    {
        return callRequired<IInt8LegacyCalibrator>(*this, "get_quantile", 0.0,
                                                   [](nb::object const& share) { return nb::cast<double>(share); });
    }
    double getRegressionCutoff() const noexcept override
    {
        return callRequired<IInt8LegacyCalibrator>(*this, "get_regression_cutoff", 0.0,
                                                   [](nb::object const& share) { return nb::cast<double>(share); });
    }
    // The override gives an address alone, so there is no length to read by: the library measures again.
    void const* readHistogramCache(std::size_t& length) noexcept override
    {
        length = 0;
        callRequired<IInt8LegacyCalibrator>(*this, "read_histogram_cache", 0, &takeNothing, size_t(0));
        return nullptr;
    }
    void writeHistogramCache(void const* bytes, std::size_t length) noexcept override
    {
        withPython("write_histogram_cache", 0, [&] {
            nb::object const address = nb::steal(PyLong_FromVoidPtr(const_cast<void*>(bytes)));
            return callRequired<IInt8LegacyCalibrator>(*this, "write_histogram_cache", 0, &takeNothing, address,
                                                       length);
        });
    }
};

template <class Class>
void defCalibrator(Class& type)
{
    using C = typename Class::Type;
    type.def(nb::init<>())
        .def(
            "get_batch_size", [](C&) -> int32_t { refuseAbstract("IInt8Calibrator::getBatchSize"); },
            "Batch size of the samples.")
        .def(
            "get_algorithm",
            [](C& self) -> CalibrationAlgoType {
                if constexpr (std::is_same_v<C, IInt8Calibrator>)
                    refuseAbstract("IInt8Calibrator::getAlgorithm");
                else
                    return self.C::getAlgorithm();
            },
            "How the samples become ranges.")
        .def(
            "get_batch",
            [](C&, std::vector<std::string> const&) -> std::vector<size_t> {
                refuseAbstract("IInt8Calibrator::getBatch");
            },
            nb::arg("names"),
            "Device addresses of the inputs with these names, as integers; None or [] when there are no more batches.")
        .def(
            "read_calibration_cache", [](C&) -> nb::bytes { refuseAbstract("IInt8Calibrator::readCalibrationCache"); },
            "What an earlier write_calibration_cache() got, or None.")
        .def(
            "write_calibration_cache", [](C&, Buffer) { refuseAbstract("IInt8Calibrator::writeCalibrationCache"); },
            nb::arg("cache"), "Receives the result for later builds, as a memoryview.");
}

} // namespace

void bindCalibrators(nb::module_& m)
{
    nb::class_<IInt8Calibrator, PythonAnyCalibrator> any(m, "IInt8Calibrator",
                                                         "Feeds sample batches to the builder, which measures ranges "
                                                         "for INT8. Derive from one of the classes below it.");
    defCalibrator(any);
    nb::class_<IInt8LegacyCalibrator, IInt8Calibrator, PythonLegacyCalibrator> legacy(
        m, "IInt8LegacyCalibrator",
        "Calibration by quantile and regression cutoff; get_quantile(), get_regression_cutoff(), "
        "read_histogram_cache() and write_histogram_cache() must be defined too.");
    defCalibrator(legacy);
    nb::class_<IInt8EntropyCalibrator, IInt8Calibrator, PythonCalibrator<IInt8EntropyCalibrator>> entropy(
        m, "IInt8EntropyCalibrator", "Calibration by information content, for each layer.");
    defCalibrator(entropy);
    nb::class_<IInt8EntropyCalibrator2, IInt8Calibrator, PythonCalibrator<IInt8EntropyCalibrator2>> entropy2(
        m, "IInt8EntropyCalibrator2", "Calibration by information content, for each tensor; the usual choice.");
    defCalibrator(entropy2);
    nb::class_<IInt8MinMaxCalibrator, IInt8Calibrator, PythonCalibrator<IInt8MinMaxCalibrator>> minMax(
        m, "IInt8MinMaxCalibrator", "Calibration by the largest absolute value.");
    defCalibrator(minMax);
}

} // namespace tw::python
