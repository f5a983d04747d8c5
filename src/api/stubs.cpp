// SPDX-License-Identifier: Apache-2.0
// What the calls of stubs.def report.
#include "api/stubs.h"

using namespace tw;
using namespace tw::api;

namespace tw::api {

namespace {

struct StubName
{
    char const* feature;
    char const* method;
};
constexpr StubName kNames[] = {
#define TW_STUB_USE(feature, cls, method) {#feature, #cls "::" #method},
#define TW_STUB_FUNCTION(feature, function) {#feature, #function},
#define TW_STUB_ABROAD(...)
#include "api/stubs.def"
#undef TW_STUB_USE
#undef TW_STUB_FUNCTION
#undef TW_STUB_ABROAD
};

Error missing(StubName const& stub, std::string const& detail)
{
    return unsupported(std::string(stub.method) + (detail.empty() ? "" : " (" + detail + ")") + ": the feature '" +
                       stub.feature + "' is not part of this version yet");
}

} // namespace

void reportStub(Reporter& reporter, Stub stub, std::string const& detail) noexcept
{
    guardedVoid(reporter, [&]() -> Result<void> { return missing(kNames[static_cast<int>(stub)], detail); });
}

} // namespace tw::api
