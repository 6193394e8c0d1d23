// STREAM(v, p) writes a vector past the caches, where the compiler has such stores; p must be a
// multiple of its size.
#ifdef __has_builtin
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM(v, p) __builtin_nontemporal_store(v, p)
#endif
#endif
#ifndef STREAM
#define STREAM(v, p) (*(p) = (v))
#endif
