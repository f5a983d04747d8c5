// SPDX-License-Identifier: Apache-2.0
// Setters and getters of public classes, a line each. In the arguments `self` is the object behind the public one and
// `value` what the client gave; the lines stand in namespace nvinfer1.
#pragma once

#include "api/report.h"

namespace tw::api {

// No layer: a change of those is more (api/network/setter.h).
template <class Object>
concept HasReporter = requires(Object const& o)
{
    o.reporter.recorder();
};

// Keeps `value` where `check()` refuses nothing.
template <HasReporter Object, class T, class Value, class Check>
void setField(Object& object, T& field, Value const& value, Check&& check) noexcept
{
    guardedVoid(object.reporter, [&]() -> Result<void> {
        TW_TRY(check());
        field = value;
        return {};
    });
}
template <HasReporter Object, class T>
void setField(Object&, T& field, T const& value) noexcept
{
    field = value;
}
// What a check said, as an error of the object.
template <class Object>
Result<void> refusal(Object const&, Result<void> checked)
{
    return checked;
}

} // namespace tw::api

// objectOf(): from the public class to the object behind it.
#define TW_OBJECT(Public, Object)                                                                                      \
    [[maybe_unused]] inline Object& objectOf(Public& o)                                                                \
    {                                                                                                                  \
        return static_cast<Object&>(o);                                                                                \
    }                                                                                                                  \
    [[maybe_unused]] inline Object const& objectOf(Public const& o)                                                    \
    {                                                                                                                  \
        return static_cast<Object const&>(o);                                                                          \
    }

#define TW_SETTER(Public, Type, setX, statements)                                                                      \
    void Public::setX(Type value) noexcept                                                                             \
    {                                                                                                                  \
        [[maybe_unused]] auto& self = objectOf(*this);                                                                 \
        statements;                                                                                                    \
    }

#define TW_GETTER(Public, Type, getX, result)                                                                          \
    Type Public::getX() const noexcept                                                                                 \
    {                                                                                                                  \
        [[maybe_unused]] auto const& self = objectOf(*this);                                                           \
        return result;                                                                                                 \
    }

// Keeps the value in a field; a check, if there is one, says why it is refused.
#define TW_FIELD_SETTER(Public, Type, setX, field, ...)                                                                \
    TW_SETTER(Public, Type, setX,                                                                                      \
              setField(self, self.field, value __VA_OPT__(, [&] { return refusal(self, __VA_ARGS__); })))

// Both for a field, with a check if there is one.
#define TW_PROPERTY(Public, Type, setX, getX, field, ...)                                                              \
    TW_FIELD_SETTER(Public, Type, setX, field __VA_OPT__(, ) __VA_ARGS__)                                              \
    TW_GETTER(Public, Type, getX, self.field)

// The error recorder of an object with a Reporter.
#define TW_RECORDER_METHODS(Public)                                                                                    \
    TW_SETTER(Public, IErrorRecorder*, setErrorRecorder, self.reporter.setRecorder(value))                             \
    TW_GETTER(Public, IErrorRecorder*, getErrorRecorder, self.reporter.recorder())
