// SPDX-License-Identifier: Apache-2.0
// Which of the compiler's sanitizers watch this program: gcc defines a macro for each, clang answers __has_feature.
#pragma once

namespace tw {

#ifndef __has_feature
#define TW_HAS_FEATURE(name) 0
#else
#define TW_HAS_FEATURE(name) __has_feature(name)
#endif

#if defined(__SANITIZE_ADDRESS__) || TW_HAS_FEATURE(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || TW_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#undef TW_HAS_FEATURE

} // namespace tw
