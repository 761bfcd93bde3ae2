// Copyright 2026 The omni_ros authors
// SPDX-License-Identifier: Apache-2.0
#include "omni_programs.h"

#include <memory>
#include <mutex>

#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/backend/options.h>

#include "guard.h"
#include "program.h"

#define OMNI_STRING_(text) #text
#define OMNI_STRING(text) OMNI_STRING_(text)

using omni::Failure;
using omni::format;
using omni::guarded;
using omni::prepare_runtime;

// The wheel has this class in libexecutorch_threadpool.so but not its header. Only pointers to it
// are used here, so its data members are of no matter.
namespace executorch::extension::threadpool {
class ThreadPool {
 public:
  bool _unsafe_reset_threadpool(uint32_t threads);
  size_t get_thread_count() const;
};
ThreadPool* get_threadpool();
}  // namespace executorch::extension::threadpool

namespace {

// Found in the file by whoever wants to know, without loading it, whether it fits.
__attribute__((used)) const char kStamp[] =
    "omni_programs " OMNI_STRING(OMNI_ABI) " executorch " OMNI_EXECUTORCH_VERSION ";";

std::mutex pool_mutex;
bool any_loaded = false;

// The delegate reads this option while it loads a method, and remembers it with the method. Under
// pool_mutex, so nobody else's load sees it.
class SharedWeights {
 public:
  explicit SharedWeights(bool on) : on_(on) {
    if (on_) {
      omni::check(set(true), "weights cannot be shared");
    }
  }
  ~SharedWeights() {
    if (on_) {
      set(false);
    }
  }
  SharedWeights(const SharedWeights&) = delete;
  SharedWeights& operator=(const SharedWeights&) = delete;

 private:
  static executorch::runtime::Error set(bool value) {
    executorch::runtime::BackendOptions<1> options;
    const auto error = options.set_option("weight_cache_enabled", value);
    if (error != executorch::runtime::Error::Ok) {
      return error;
    }
    return executorch::runtime::set_option("XnnpackBackend", options.view());
  }

  const bool on_;
};

}  // namespace

extern "C" {

int omni_abi(void) {
  return OMNI_ABI;
}

const char* omni_executorch_version(void) {
  return OMNI_EXECUTORCH_VERSION;
}

uint32_t omni_threads(void) {
  // The pool logs while it is made.
  prepare_runtime();
  auto* pool = executorch::extension::threadpool::get_threadpool();
  return pool == nullptr ? 1 : static_cast<uint32_t>(pool->get_thread_count());
}

int omni_set_threads(uint32_t threads, char* error, size_t capacity) {
  return guarded(error, capacity, [&] {
    prepare_runtime();
    if (threads < 1 || threads > 1024) {
      throw Failure(format("%u threads asked for, expected 1 to 1024", threads));
    }
    const std::lock_guard<std::mutex> lock(pool_mutex);
    const uint32_t now = omni_threads();
    if (now == threads) {
      return;
    }
    if (any_loaded) {
      throw Failure(format(
          "%u threads asked for, but the pool has %u and a program that holds it; set the threads "
          "before the first load",
          threads, now));
    }
    auto* pool = executorch::extension::threadpool::get_threadpool();
    if (pool == nullptr || !pool->_unsafe_reset_threadpool(threads)) {
      throw Failure(format("the pool cannot be resized from %u to %u threads", now, threads));
    }
  });
}

int omni_load(
    const char* path,
    const char* method,
    int share,
    omni_program** program,
    char* error,
    size_t capacity) {
  *program = nullptr;
  return guarded(error, capacity, [&] {
    prepare_runtime();
    auto loaded = std::make_unique<omni_program>();
    // The pool must not be resized under a load either.
    const std::lock_guard<std::mutex> lock(pool_mutex);
    loaded->open(path);
    const SharedWeights sharing(share != 0);
    loaded->load(method);
    any_loaded = true;
    *program = loaded.release();
  });
}

void omni_unload(omni_program* program) {
  guarded(nullptr, 0, [&] { delete program; });
}

size_t omni_input_count(const omni_program* program) {
  return program->inputs.size();
}
size_t omni_output_count(const omni_program* program) {
  return program->outputs.size();
}
const omni_tensor* omni_input(const omni_program* program, size_t index) {
  return index < program->inputs.size() ? &program->inputs[index].spec : nullptr;
}
const omni_tensor* omni_output(const omni_program* program, size_t index) {
  return index < program->outputs.size() ? &program->outputs[index].spec : nullptr;
}
size_t omni_arena_count(const omni_program* program) {
  return program->arena_bytes.size();
}
uint64_t omni_arena_bytes(const omni_program* program, size_t index) {
  return index < program->arena_bytes.size() ? program->arena_bytes[index] : 0;
}
size_t omni_backend_count(const omni_program* program) {
  return program->backends.size();
}
const char* omni_backend(const omni_program* program, size_t index) {
  return index < program->backends.size() ? program->backends[index].c_str() : nullptr;
}

int omni_bind_input(
    omni_program* program,
    size_t index,
    void* data,
    uint64_t bytes,
    char* error,
    size_t capacity) {
  return guarded(error, capacity, [&] { program->bind_input(index, data, bytes); });
}

int omni_bind_output(
    omni_program* program,
    size_t index,
    void* data,
    uint64_t bytes,
    char* error,
    size_t capacity) {
  return guarded(error, capacity, [&] { program->bind_output(index, data, bytes); });
}

int omni_point(
    omni_program* program,
    const omni_pointers* inputs,
    const omni_pointers* outputs,
    char* error,
    size_t capacity) {
  return guarded(error, capacity, [&] { program->point(*inputs, *outputs); });
}

int omni_run(omni_program* program, int64_t* nanoseconds, char* error, size_t capacity) {
  return guarded(error, capacity, [&] { *nanoseconds = program->run(); });
}

}  // extern "C"
