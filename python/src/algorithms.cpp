// SPDX-License-Identifier: Apache-2.0
// The choice of algorithms. The library's objects live during a call only, so Python gets copies, which live as long as it likes.
#include <vector>

#include <nanobind/stl/vector.h>

#include "callback.h"
#include "module.h"

namespace tw::python {

using namespace nvinfer1;

namespace {

struct IoInfo
{
    TensorFormat format;
    DataType type;
    Dims strides;
};

struct Variant
{
    int64_t implementation;
    int64_t tactic;
};

struct Context
{
    std::string name;
    int32_t inputs;
    int32_t outputs;
    std::vector<std::vector<Dims>> shapes; // [input or output][min, opt, max]
};

struct Algorithm
{
    Variant variant;
    float ms;
    size_t workspaceBytes;
    std::vector<IoInfo> infos;
};

Context copyOf(IAlgorithmContext const& context)
{
    Context copy{context.getName(), context.getNbInputs(), context.getNbOutputs(), {}};
    for (int32_t i = 0; i < copy.inputs + copy.outputs; ++i)
        copy.shapes.push_back({context.getDimensions(i, OptProfileSelector::kMIN),
                               context.getDimensions(i, OptProfileSelector::kOPT),
                               context.getDimensions(i, OptProfileSelector::kMAX)});
    return copy;
}

Algorithm copyOf(IAlgorithm const& algorithm)
{
    IAlgorithmVariant const& variant = algorithm.getAlgorithmVariant();
    Algorithm copy{{variant.getImplementation(), variant.getTactic()},
                   algorithm.getTimingMSec(),
                   algorithm.getWorkspaceSize(),
                   {}};
    for (int32_t i = 0; IAlgorithmIOInfo const* info = algorithm.getAlgorithmIOInfoByIndex(i); ++i)
        copy.infos.push_back({info->getTensorFormat(), info->getDataType(), info->getStrides()});
    return copy;
}

template <class T>
nb::list copies(T const* const* objects, int32_t count)
{
    nb::list list;
    for (int32_t i = 0; i < count; ++i)
        list.append(nb::cast(copyOf(*objects[i])));
    return list;
}

template <class T>
T const& at(std::vector<T> const& list, int32_t index)
{
    if (index < 0 || size_t(index) >= list.size())
        throw nb::index_error(("index " + std::to_string(index) + " is out of range: inputs and outputs are " +
                               std::to_string(list.size()))
                                  .c_str());
    return list[size_t(index)];
}

class PythonSelector final : public IAlgorithmSelector
{
public:
    int32_t selectAlgorithms(IAlgorithmContext const& context, IAlgorithm const* const* choices, int32_t count,
                             int32_t* selection) noexcept override
    {
        // Not 0, with which a build may go on: who picks and fails has not agreed to any.
        constexpr int32_t kFailed = -1;
        return withPython("select_algorithms", kFailed, [&] {
            return callRequired<IAlgorithmSelector>(
                *this, "select_algorithms", kFailed,
                [&](nb::object const& chosen) {
                    auto const indices = nb::cast<std::vector<int32_t>>(chosen);
                    if (indices.size() > size_t(count))
                        throw nb::value_error(("select_algorithms() returned " + std::to_string(indices.size()) +
                                               " indices for " + std::to_string(count) + " choices")
                                                  .c_str());
                    std::copy(indices.begin(), indices.end(), selection);
                    return int32_t(indices.size());
                },
                copyOf(context), copies(choices, count));
        });
    }

    void reportAlgorithms(IAlgorithmContext const* const* contexts, IAlgorithm const* const* choices,
                          int32_t count) noexcept override
    {
        withPython("report_algorithms", 0, [&] {
            return callRequired<IAlgorithmSelector>(
                *this, "report_algorithms", 0, [](nb::object const&) { return 0; }, copies(contexts, count),
                copies(choices, count));
        });
    }
};

} // namespace

void bindAlgorithms(nb::module_& m)
{
    nb::class_<IoInfo>(m, "IAlgorithmIOInfo", "Type, format and strides of one input or output of an algorithm.")
        .def_ro("tensor_format", &IoInfo::format, "Memory format.")
        .def_ro("dtype", &IoInfo::type, "Element type.")
        .def_prop_ro(
            "strides", [](IoInfo const& self) { return Dims(self.strides); },
            "Strides in elements, or in vectors for vectorized formats.");
    nb::class_<Variant>(m, "IAlgorithmVariant",
                        "Identity of an algorithm: the same pair in the same release means the same code.")
        .def_ro("implementation", &Variant::implementation, "Number of the implementation.")
        .def_ro("tactic", &Variant::tactic, "Number of the tactic.");
    nb::class_<Context>(m, "IAlgorithmContext", "The layer, after optimization, for which an algorithm is chosen.")
        .def_ro("name", &Context::name, "Name of the layer.")
        .def(
            "get_shape", [](Context const& self, int32_t index) { return at(self.shapes, index); }, nb::arg("index"),
            "[min, opt, max] of an input or output, inputs first.")
        .def_ro("num_inputs", &Context::inputs, "Number of inputs.")
        .def_ro("num_outputs", &Context::outputs, "Number of outputs.");
    nb::class_<Algorithm>(m, "IAlgorithm", "One way to run a layer.")
        .def(
            "get_algorithm_io_info", [](Algorithm const& self, int32_t index) { return at(self.infos, index); },
            nb::arg("index"), "An input or output, inputs first.")
        .def_prop_ro(
            "algorithm_variant", [](Algorithm const& self) { return Variant(self.variant); },
            "Identity of the algorithm.")
        .def_ro("timing_msec", &Algorithm::ms, "Measured time in milliseconds.")
        .def_ro("workspace_size", &Algorithm::workspaceBytes, "Scratch memory in bytes.");
    nb::class_<IAlgorithmSelector, PythonSelector>(
        m, "IAlgorithmSelector",
        "Chooses the algorithm of each layer. Derive from it, call its __init__ and define its methods.")
        .def(nb::init<>())
        .def(
            "select_algorithms",
            [](IAlgorithmSelector&, Context const&, std::vector<Algorithm> const&) -> std::vector<int32_t> {
                refuseAbstract("IAlgorithmSelector::selectAlgorithms");
            },
            nb::arg("context"), nb::arg("choices"), "Indices of the acceptable choices.")
        .def(
            "report_algorithms",
            [](IAlgorithmSelector&, std::vector<Context> const&, std::vector<Algorithm> const&) {
                refuseAbstract("IAlgorithmSelector::reportAlgorithms");
            },
            nb::arg("contexts"), nb::arg("choices"), "Receives the final choice for all layers.");
}

} // namespace tw::python
