// Copyright 2026 The omni_ros authors
// SPDX-License-Identifier: Apache-2.0
#include "guard.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

namespace omni {
namespace {

thread_local Capture* capture = nullptr;

void on_log(
    et_timestamp_t,
    et_pal_log_level_t level,
    const char*,
    const char*,
    size_t,
    const char* message,
    size_t length) {
  if (level != kError && level != kFatal) {
    return;
  }
  if (capture == nullptr) {
    const int shown = static_cast<int>(std::min<size_t>(length, 500));
    std::fprintf(stderr, "executorch: %.*s\n", shown, message);
    return;
  }
  // The first lines name the cause, those after it who passed it on.
  Capture& log = *capture;
  if (log.lines++ >= 3) {
    return;
  }
  const char* separator = log.length == 0 ? "" : "; ";
  const int written = std::snprintf(
      log.text + log.length,
      sizeof log.text - log.length,
      "%s%.*s",
      separator,
      static_cast<int>(std::min<size_t>(length, 400)),
      message);
  if (written > 0) {
    log.length = std::min(log.length + static_cast<size_t>(written), sizeof log.text - 1);
  }
}

// A failed check in ExecuTorch means abort(). Inside a call of ours it becomes an error instead: the
// runtime's frames hold nothing that must be unwound, and the program is not used again.
void on_abort() {
  if (capture != nullptr) {
    throw Failure("ExecuTorch gave up on a failed check");
  }
  std::abort();
}

}  // namespace

Capture::Capture() : outer(capture) {
  capture = this;
}
Capture::~Capture() {
  capture = outer;
}

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

void check(executorch::runtime::Error error, const char* action) {
  if (error != executorch::runtime::Error::Ok) {
    const char* name = executorch::runtime::to_string(error);
    if (std::strncmp(name, "Error::", 7) == 0) {
      name += 7;
    }
    throw Failure(format("%s: %s 0x%02x", action, name, static_cast<unsigned>(error)));
  }
}

void prepare_runtime() {
  static std::once_flag once;
  std::call_once(once, [] {
    executorch::runtime::runtime_init();
    executorch::runtime::PalImpl impl = {};
    impl.abort = on_abort;
    impl.emit_log_message = on_log;
    impl.source_filename = __FILE__;
    executorch::runtime::register_pal(impl);
  });
}

void write_error(const char* text, const Capture& log, char* error, size_t capacity) {
  if (error == nullptr || capacity == 0) {
    return;
  }
  std::snprintf(error, capacity, log.length == 0 ? "%s" : "%s (%s)", text, log.text);
  // One line, whatever bytes of a damaged file found their way into a message.
  for (char* c = error; *c != '\0'; ++c) {
    if (static_cast<unsigned char>(*c) < 0x20 || *c == 0x7f) {
      *c = ' ';
    }
  }
}

}  // namespace omni
