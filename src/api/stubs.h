// SPDX-License-Identifier: Apache-2.0
// Calls whose feature comes later: the list is stubs.def, and nothing else may be reported as missing.
#pragma once

#include "api/report.h"

namespace tw::api {

// feature_class_method of each line of stubs.def that stands in this library.
enum class Stub
{
#define TW_STUB_USE(feature, cls, method) feature##_##cls##_##method,
#define TW_STUB_FUNCTION(feature, function) function,
#define TW_STUB_ABROAD(...)
#include "api/stubs.def"
#undef TW_STUB_USE
#undef TW_STUB_FUNCTION
#undef TW_STUB_ABROAD
};

// One error (kUNSUPPORTED_STATE) that names the method and, in `detail`, the argument that asks for the feature.
void reportStub(Reporter& reporter, Stub stub, std::string const& detail = "") noexcept;

} // namespace tw::api
