// Which sanitizer this is a build with. Each makes most things several times slower.
#pragma once

#ifdef __has_feature  // clang says it so, g++ by a macro for each
#define NETCL_HAS_SANITIZER(feature) __has_feature(feature)
#else
#define NETCL_HAS_SANITIZER(feature) 0
#endif

namespace netcl::test {

#if defined(__SANITIZE_THREAD__) || NETCL_HAS_SANITIZER(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__) || NETCL_HAS_SANITIZER(address_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = kThreadSanitizer;
#endif

}  // namespace netcl::test
