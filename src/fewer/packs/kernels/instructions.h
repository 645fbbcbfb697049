/* Which instructions there are: the same source is compiled for each set, and one is chosen when a module is loaded. */
#ifndef FEWER_INSTRUCTIONS_H
#define FEWER_INSTRUCTIONS_H

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define SEVERAL 1
#define AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512")))
#define AVX2 __attribute__((target("avx2,fma")))
#else
#define SEVERAL 0
#endif

enum { NONE = -1, PORTABLE, WITH_AVX2, WITH_AVX512 };

/* The set of this name, or the best for no name; NONE where this machine does not have it. */
static int instructions(const char *name) {
#if SEVERAL
    __builtin_cpu_init();
    const int wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                     __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    const int middle = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (wide && (!name || !strcmp(name, "avx512"))) return WITH_AVX512;
    if (middle && (!name || !strcmp(name, "avx2"))) return WITH_AVX2;
#endif
    return !name || !strcmp(name, "portable") ? PORTABLE : NONE;
}

#endif
