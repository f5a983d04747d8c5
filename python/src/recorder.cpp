// SPDX-License-Identifier: Apache-2.0
#include "recorder.h"

#include <atomic>

#include "callback.h"
#include "enums.h"

namespace tw::python {

using namespace nvinfer1;

namespace {

class PythonRecorder final : public IErrorRecorder
{
public:
    int32_t getNbErrors() const noexcept override
    {
        return callRequired<IErrorRecorder>(*this, "get_num_errors", int32_t(0),
                                            [](nb::object const& count) { return nb::cast<int32_t>(count); });
    }
    ErrorCode getErrorCode(int32_t index) const noexcept override
    {
        return callRequired<IErrorRecorder>(
            *this, "get_error_code", ErrorCode::kUNSPECIFIED_ERROR,
            [](nb::object const& code) { return nb::cast<ErrorCode>(code); }, index);
    }
    ErrorDesc getErrorDesc(int32_t index) const noexcept override
    {
        return callRequired<IErrorRecorder>(
            *this, "get_error_desc", "",
            [&](nb::object const& text) {
                description_ = nb::cast<std::string>(text);
                return description_.c_str();
            },
            index);
    }
    bool hasOverflowed() const noexcept override
    {
        return callRequired<IErrorRecorder>(*this, "has_overflowed", false,
                                            [](nb::object const& is) { return nb::cast<bool>(is); });
    }
    void clear() noexcept override
    {
        callRequired<IErrorRecorder>(*this, "clear", 0, [](nb::object const&) { return 0; });
    }
    bool reportError(ErrorCode code, ErrorDesc text) noexcept override
    {
        return withPython("report_error", true, [&] {
            nb::object const decoded =
                nb::steal(PyUnicode_DecodeUTF8(text, Py_ssize_t(std::char_traits<char>::length(text)), "replace"));
            return callRequired<IErrorRecorder>(
                *this, "report_error", true,
                [](nb::object const& isFatal) { return !isFatal.is_none() && nb::cast<bool>(isFatal); }, code, decoded);
        });
    }
    RefCount incRefCount() noexcept override
    {
        RefCount const count = ++references_;
        if (count == 1)
            withPython("incRefCount", 0,
                       [&] { return nb::find(static_cast<IErrorRecorder const&>(*this)).inc_ref(), 0; });
        return count;
    }
    RefCount decRefCount() noexcept override
    {
        RefCount const count = --references_;
        if (count == 0) // the object may be gone after this line
            withPython("decRefCount", 0,
                       [&] { return nb::find(static_cast<IErrorRecorder const&>(*this)).dec_ref(), 0; });
        return count;
    }

private:
    std::atomic<RefCount> references_{0};
    mutable std::string description_; // what getErrorDesc() gave last
};

} // namespace

class Reason::Listener final : public IErrorRecorder
{
public:
    explicit Listener(IErrorRecorder* next) : next_(next) {}

    int32_t getNbErrors() const noexcept override { return next_ ? next_->getNbErrors() : 0; }
    ErrorCode getErrorCode(int32_t index) const noexcept override
    {
        return next_ ? next_->getErrorCode(index) : ErrorCode::kSUCCESS;
    }
    ErrorDesc getErrorDesc(int32_t index) const noexcept override { return next_ ? next_->getErrorDesc(index) : ""; }
    bool hasOverflowed() const noexcept override { return next_ && next_->hasOverflowed(); }
    void clear() noexcept override
    {
        if (next_)
            next_->clear();
    }
    bool reportError(ErrorCode code, ErrorDesc description) noexcept override
    {
        text = description;
        return next_ ? next_->reportError(code, description) : true;
    }
    RefCount incRefCount() noexcept override { return ++references_; }
    RefCount decRefCount() noexcept override { return --references_; }

    std::string text;

private:
    IErrorRecorder* const next_;
    std::atomic<RefCount> references_{0};
};

Reason::Reason(IExecutionContext& context)
    : context_(context), before_(context.getErrorRecorder()), listener_(std::make_unique<Listener>(before_))
{
    if (before_)
        before_->incRefCount(); // the context's own reference goes meanwhile
    context_.setErrorRecorder(listener_.get());
}

Reason::~Reason()
{
    context_.setErrorRecorder(before_);
    if (before_)
        before_->decRefCount();
}

std::string Reason::text() const
{
    return listener_->text.empty() ? "the library gave no reason" : listener_->text;
}

void bindRecorder(nb::module_& m)
{
    using R = IErrorRecorder;
    nb::class_<R, PythonRecorder> type(m, "IErrorRecorder",
                                       "Collects errors. Derive from it, call its __init__ and define its methods; "
                                       "get_num_errors() is what num_errors() calls.");
    type.attr("MAX_DESC_LENGTH") = nb::int_(R::kMAX_DESC_LENGTH);
    type.def(nb::init<>())
        .def("num_errors", &R::getNbErrors, "Number of errors held.")
        .def("get_error_code", &R::getErrorCode, nb::arg(), "Kind of an error.")
        .def("get_error_desc", &R::getErrorDesc, nb::arg(), "Text of an error.")
        .def("has_overflowed", &R::hasOverflowed, "Whether errors were dropped because the list was full.")
        .def("clear", &R::clear, "Forgets all errors.")
        .def("report_error", &R::reportError, nb::arg(), nb::arg(), "Adds an error. True means that it is fatal.");
}

} // namespace tw::python
