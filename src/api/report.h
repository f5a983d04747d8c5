// SPDX-License-Identifier: Apache-2.0
// Where an API object's messages go: the user's logger, and for errors the error recorder too. Objects hand theirs on
// to the objects that they make (builder -> network, config; runtime -> engine -> context, inspector).
#pragma once

#include <atomic>
#include <concepts>
#include <exception>
#include <new>
#include <string>

#include "NvInfer.h"
#include "base/check.h"
#include "base/log.h"
#include "base/result.h"

namespace tw::api {

class Reporter final : public Log
{
public:
    explicit Reporter(nvinfer1::ILogger* logger, nvinfer1::IErrorRecorder* recorder = nullptr) : logger_(logger)
    {
        setRecorder(recorder);
    }
    Reporter(Reporter const& o) : Log(), logger_(o.logger_) { setRecorder(o.recorder()); }
    Reporter& operator=(Reporter const&) = delete;
    ~Reporter() override { setRecorder(nullptr); }

    void write(Severity severity, std::string const& message) override;
    // One log line "<n>: [<where>::<code>] <message>" and one recorder entry.
    void error(Error const& e);
    using Log::error;

    nvinfer1::ILogger* logger() const { return logger_; }
    nvinfer1::IErrorRecorder* recorder() const { return recorder_.load(); }
    // Keeps a reference count on the recorder, as its interface asks.
    void setRecorder(nvinfer1::IErrorRecorder* recorder);

private:
    nvinfer1::ILogger* logger_;
    std::atomic<nvinfer1::IErrorRecorder*> recorder_{nullptr};
};

// Runs the body of a public method: what it throws or returns as an error becomes one report, and `failure` is
// returned. The body returns Result<T>.
template <class T, class Body>
T guarded(Reporter& reporter, T failure, Body&& body) noexcept
{
    try {
        Result<T> r = body();
        if (r.ok())
            return std::move(r).value();
        reporter.error(r.error());
    } catch (std::bad_alloc const&) {
        reporter.error(failedAllocation("out of memory"));
    } catch (CheckFailed const& e) {
        reporter.error(internalError(e.what()));
    } catch (std::exception const& e) {
        reporter.error(Error{ErrorCode::kUnspecified, e.what()});
    }
    return failure;
}

template <class Body>
void guardedVoid(Reporter& reporter, Body&& body) noexcept
{
    guarded<bool>(reporter, false, [&]() -> Result<bool> {
        TW_TRY(body());
        return true;
    });
}

// The same for the object behind a public one, which has a reporter or is a part of a network: body(object).
template <class Object>
Reporter& reporterOf(Object& object)
{
    if constexpr (requires { object.network->reporter; })
        return object.network->reporter;
    else
        return object.reporter;
}
template <class T, class Object, class Body>
requires(!std::same_as<Object, Reporter>) T guarded(Object& object, T failure, Body&& body)
noexcept
{
    return guarded<T>(reporterOf(object), failure, [&] { return body(object); });
}
template <class Object, class Body>
requires(!std::same_as<Object, Reporter>) void guardedVoid(Object& object, Body&& body) noexcept
{
    guardedVoid(reporterOf(object), [&] { return body(object); });
}

} // namespace tw::api
