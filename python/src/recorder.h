// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <NvInfer.h>

#include "module.h"
#include "owner.h"

namespace tw::python {

/// Listens to what a context reports while this lives, in front of the recorder that it has.
class Reason
{
public:
    explicit Reason(nvinfer1::IExecutionContext& context);
    ~Reason();
    Reason(Reason const&) = delete;
    Reason& operator=(Reason const&) = delete;

    /// What was reported last.
    std::string text() const;

private:
    class Listener;

    nvinfer1::IExecutionContext& context_;
    nvinfer1::IErrorRecorder* const before_;
    std::unique_ptr<Listener> listener_;
};

/// The property error_recorder. The library counts references to a recorder, and those keep its Python object alive.
template <class T, class... Extra>
void defRecorder(nb::class_<T, Extra...>& type)
{
    type.def_prop_rw(
        "error_recorder", [](T& self) { return interfaceOf(self).getErrorRecorder(); },
        [](T& self, nvinfer1::IErrorRecorder* recorder) { interfaceOf(self).setErrorRecorder(recorder); },
        nb::for_getter(nb::rv_policy::reference), nb::for_setter(nb::arg("value").none()),
        "Recorder of the errors of this object, or None.");
}

} // namespace tw::python
