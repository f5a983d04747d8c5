// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or an Error. No exception leaves a function that returns a Result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace tw {

// Same numbers as nvinfer1::ErrorCode, so that the API layer converts with a cast.
enum class ErrorCode : int32_t
{
    kSuccess = 0,
    kUnspecified = 1,
    kInternal = 2,
    kInvalidArgument = 3,
    kInvalidConfig = 4,
    kFailedAllocation = 5,
    kFailedInitialization = 6,
    kFailedExecution = 7,
    kFailedComputation = 8,
    kInvalidState = 9,
    kUnsupportedState = 10,
};

struct Error
{
    ErrorCode code = ErrorCode::kUnspecified;
    std::string message;

    // Prefixes what the caller knows: "layer 'conv1': " + message.
    Error in(std::string const& where) && { return Error{code, where + ": " + message}; }
};

// Makes errors of one code: of a text as it is, or of one with {} and what stands there, as fmt::format() has it.
template <ErrorCode code>
struct ErrorMaker
{
    Error operator()(std::string text) const { return Error{code, std::move(text)}; }
    template <class... Args>
    Error operator()(fmt::format_string<Args...> text, Args&&... args) const
    {
        return Error{code, fmt::format(text, std::forward<Args>(args)...)};
    }
};
inline constexpr ErrorMaker<ErrorCode::kInvalidArgument> invalidArgument;
inline constexpr ErrorMaker<ErrorCode::kInvalidState> invalidState;
inline constexpr ErrorMaker<ErrorCode::kInternal> internalError;
inline constexpr ErrorMaker<ErrorCode::kFailedInitialization> failedInitialization;
inline constexpr ErrorMaker<ErrorCode::kFailedAllocation> failedAllocation;
inline constexpr ErrorMaker<ErrorCode::kFailedExecution> failedExecution;
// The same as functions: kernels have functions of that name, which are found by their arguments.
inline Error unsupported(std::string text)
{
    return Error{ErrorCode::kUnsupportedState, std::move(text)};
}
template <class... Args>
Error unsupported(fmt::format_string<Args...> text, Args&&... args)
{
    return unsupported(fmt::format(text, std::forward<Args>(args)...));
}

template <class T>
class [[nodiscard]] Result
{
public:
    Result(T value) : value_(std::move(value)) {}
    Result(Error error) : error_(std::move(error)) {}

    bool ok() const { return value_.has_value(); }
    explicit operator bool() const { return ok(); }
    T& value() & { return *value_; }
    T const& value() const& { return *value_; }
    T&& value() && { return std::move(*value_); }
    T& operator*() & { return *value_; }
    T const& operator*() const& { return *value_; }
    T* operator->() { return &*value_; }
    T const* operator->() const { return &*value_; }
    Error const& error() const& { return error_; }
    Error&& error() && { return std::move(error_); }

private:
    std::optional<T> value_;
    Error error_;
};

template <>
class [[nodiscard]] Result<void>
{
public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}

    bool ok() const { return !error_.has_value(); }
    explicit operator bool() const { return ok(); }
    Error const& error() const& { return *error_; }
    Error&& error() && { return std::move(*error_); }

private:
    std::optional<Error> error_;
};

} // namespace tw

#define TW_CONCAT_(a, b) a##b
#define TW_CONCAT(a, b) TW_CONCAT_(a, b)

// Returns the error of a Result expression, else goes on.
#define TW_TRY(expr)                                                                                                   \
    do {                                                                                                               \
        auto tryResult_ = (expr);                                                                                      \
        if (!tryResult_.ok())                                                                                          \
            return std::move(tryResult_).error();                                                                      \
    } while (0)

// TW_SET(x, f()): x becomes what the Result holds, or its error is returned; one statement.
#define TW_SET(to, expr)                                                                                               \
    do {                                                                                                               \
        auto setResult_ = (expr);                                                                                      \
        if (!setResult_.ok())                                                                                          \
            return std::move(setResult_).error();                                                                      \
        to = std::move(setResult_).value();                                                                            \
    } while (0)

// TW_ASSIGN(auto x, f()): declares x from the Result, or returns its error.
#define TW_ASSIGN(decl, expr)                                                                                          \
    auto TW_CONCAT(assignResult_, __LINE__) = (expr);                                                                  \
    if (!TW_CONCAT(assignResult_, __LINE__).ok())                                                                      \
        return std::move(TW_CONCAT(assignResult_, __LINE__)).error();                                                  \
    decl = std::move(TW_CONCAT(assignResult_, __LINE__)).value()
