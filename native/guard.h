// Copyright 2026 The omni_ros authors
// SPDX-License-Identifier: Apache-2.0
//
// Every failure becomes one line of text: error codes, exceptions, and what ExecuTorch would log or
// abort() for.
#ifndef OMNI_GUARD_H_
#define OMNI_GUARD_H_

#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <executorch/runtime/core/error.h>

namespace omni {

struct Failure final : std::exception {
  explicit Failure(std::string what) : text(std::move(what)) {}
  const char* what() const noexcept override { return text.c_str(); }
  std::string text;
};

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...);

// Throw a Failure unless `error` is Ok.
void check(executorch::runtime::Error error, const char* action);

// Start ExecuTorch and take over what it logs and how it gives up. As often as wanted.
void prepare_runtime();

// The errors that ExecuTorch logs during a call of ours, on the thread of the call. Fixed memory:
// it must work when there is none left.
struct Capture {
  char text[1024] = {};
  size_t length = 0;
  size_t lines = 0;
  Capture* outer;
  Capture();
  ~Capture();
};

// Write the text of a failure and what was logged as one line, cut where it does not fit.
void write_error(const char* text, const Capture& log, char* error, size_t capacity);

template <typename Body>
int guarded(char* error, size_t capacity, const Body& body) noexcept {
  Capture log;
  try {
    body();
    return 0;
  } catch (const std::bad_alloc&) {
    write_error("out of memory", log, error, capacity);
  } catch (const std::exception& failure) {
    write_error(failure.what(), log, error, capacity);
  } catch (...) {
    write_error("unknown C++ exception", log, error, capacity);
  }
  return 1;
}

}  // namespace omni

#endif  // OMNI_GUARD_H_
