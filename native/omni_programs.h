// Copyright 2026 The omni_ros authors
// SPDX-License-Identifier: Apache-2.0
//
// ExecuTorch programs behind a C interface, for ctypes: a call through ctypes holds no Python lock
// while it runs, and needs neither libtorch nor ExecuTorch's own Python binding.
//
// Every function that can fail returns 0 for success, else 1 with one line of text in `error`
// (`capacity` bytes with the final NUL, cut where it does not fit). No C++ exception passes this
// interface. A handle may be used by one thread at a time; different handles by different threads.
#ifndef OMNI_PROGRAMS_H_
#define OMNI_PROGRAMS_H_

#include <stddef.h>
#include <stdint.h>

#define OMNI_API __attribute__((visibility("default")))
#define OMNI_ABI 3
#define OMNI_MAX_RANK 8

#ifdef __cplusplus
extern "C" {
#endif

typedef struct omni_program omni_program;

typedef struct {
  int32_t dtype;  // ExecuTorch's ScalarType
  int32_t rank;
  int64_t sizes[OMNI_MAX_RANK];
  uint64_t bytes;
} omni_tensor;

// OMNI_ABI of the built library, and the ExecuTorch version it was built for.
OMNI_API int omni_abi(void);
OMNI_API const char* omni_executorch_version(void);

// The pool that all programs of the process share. Resizing it under a loaded program leaves that
// with a freed pool, hence a hang: refused after the first load.
OMNI_API int omni_set_threads(uint32_t threads, char* error, size_t capacity);
OMNI_API uint32_t omni_threads(void);

// Load one method of a file. Its inputs and outputs must be dense tensors outside the memory plan.
// With `share` XNNPACK keeps one packed copy of equal weights for all programs loaded so.
OMNI_API int omni_load(
    const char* path,
    const char* method,
    int share,
    omni_program** program,
    char* error,
    size_t capacity);
OMNI_API void omni_unload(omni_program* program);

OMNI_API size_t omni_input_count(const omni_program* program);
OMNI_API size_t omni_output_count(const omni_program* program);
OMNI_API const omni_tensor* omni_input(const omni_program* program, size_t index);
OMNI_API const omni_tensor* omni_output(const omni_program* program, size_t index);
OMNI_API size_t omni_arena_count(const omni_program* program);
OMNI_API uint64_t omni_arena_bytes(const omni_program* program, size_t index);
OMNI_API size_t omni_backend_count(const omni_program* program);
OMNI_API const char* omni_backend(const omni_program* program, size_t index);

// Let the program read input `index` from `data`, or write output `index` to it, at every run until
// the next call. The memory is the caller's and must outlive the program or the next call.
OMNI_API int omni_bind_input(
    omni_program* program,
    size_t index,
    void* data,
    uint64_t bytes,
    char* error,
    size_t capacity);
OMNI_API int omni_bind_output(
    omni_program* program,
    size_t index,
    void* data,
    uint64_t bytes,
    char* error,
    size_t capacity);

// Both for many tensors in one call, as quick as can be: for memory that omni_bind_input or
// omni_bind_output took before for the same tensor, and that is still there. Only indices are checked.
typedef struct {
  size_t count;
  const uint32_t* indices;
  void* const* data;
} omni_pointers;
OMNI_API int omni_point(
    omni_program* program,
    const omni_pointers* inputs,
    const omni_pointers* outputs,
    char* error,
    size_t capacity);

// Run once, on the calling thread and the pool.
OMNI_API int omni_run(omni_program* program, int64_t* nanoseconds, char* error, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif  // OMNI_PROGRAMS_H_
