// SPDX-License-Identifier: Apache-2.0
// Objects that Python makes by calling a class: Python classes can be derived from them.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include <NvInfer.h>

namespace tw::python {

template <class T>
class Owner
{
public:
    using Interface = T;

    /// what: for the message when the library gave none.
    Owner(T* made, char const* what) : object_(made)
    {
        if (!made)
            throw std::runtime_error(std::string(what) + " could not be made; the logger has the reason");
    }

    T* operator->() const { return object_.get(); }
    T& operator*() const { return *object_; }

private:
    std::unique_ptr<T> object_;
};

/// The library keeps the first logger that it was given for as long as the process lives, so it must live as long.
nvinfer1::ILogger& keptIfFirst(nvinfer1::ILogger& logger);

struct Builder : Owner<nvinfer1::IBuilder>
{
    explicit Builder(nvinfer1::ILogger& logger) : Owner(nvinfer1::createInferBuilder(logger), "the builder")
    {
        keptIfFirst(logger);
    }
};

struct Runtime : Owner<nvinfer1::IRuntime>
{
    explicit Runtime(nvinfer1::ILogger& logger) : Owner(nvinfer1::createInferRuntime(logger), "the runtime")
    {
        keptIfFirst(logger);
    }
};

struct Refitter : Owner<nvinfer1::IRefitter>
{
    Refitter(nvinfer1::ICudaEngine& engine, nvinfer1::ILogger& logger)
        : Owner(nvinfer1::createInferRefitter(engine, logger), "the refitter")
    {
        keptIfFirst(logger);
    }
};

/// The interface behind an object, whether Python owns it through an Owner or not.
template <class T>
auto& interfaceOf(T& object)
{
    if constexpr (requires { typename T::Interface; })
        return *object;
    else
        return object;
}

} // namespace tw::python
