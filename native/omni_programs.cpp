// Copyright 2026 The omni_ros authors
// SPDX-License-Identifier: Apache-2.0
#include "omni_programs.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/core/portable_type/scalar_type.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include "file_loader.h"

#define OMNI_STRING_(text) #text
#define OMNI_STRING(text) OMNI_STRING_(text)

namespace runtime = executorch::runtime;
using executorch::aten::Tensor;
using executorch::aten::TensorImpl;
using executorch::extension::MallocMemoryAllocator;
using runtime::Error;

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

// XNNPACK may read this far past the end of an input (its XNN_EXTRA_BYTES is 16 on CPUs).
constexpr size_t kReadAhead = 16;
constexpr size_t kAlignment = 64;

struct Failure final : std::exception {
  explicit Failure(std::string what) : text(std::move(what)) {}
  const char* what() const noexcept override { return text.c_str(); }
  std::string text;
};

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

// ---- what ExecuTorch logs and how it gives up ----------------------------------------------------

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

thread_local Capture* capture = nullptr;

Capture::Capture() : outer(capture) {
  capture = this;
}
Capture::~Capture() {
  capture = outer;
}

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
    std::fprintf(stderr, "executorch: %.*s\n", static_cast<int>(std::min<size_t>(length, 500)), message);
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

// A failed check in ExecuTorch means abort(). Inside a call of ours it becomes an error instead; the
// runtime's frames hold nothing that must be unwound, and the program is not used again.
void on_abort() {
  if (capture != nullptr) {
    throw Failure("ExecuTorch gave up on a failed check");
  }
  std::abort();
}

void prepare_runtime() {
  static std::once_flag once;
  std::call_once(once, [] {
    runtime::runtime_init();
    runtime::PalImpl impl = {};
    impl.abort = on_abort;
    impl.emit_log_message = on_log;
    impl.source_filename = __FILE__;
    runtime::register_pal(impl);
  });
}

void write_error(const char* text, const char* log, char* error, size_t capacity) {
  if (error == nullptr || capacity == 0) {
    return;
  }
  std::snprintf(error, capacity, log[0] == '\0' ? "%s" : "%s (%s)", text, log);
  // One line, whatever bytes of a damaged file found their way into a message.
  for (char* c = error; *c != '\0'; ++c) {
    if (static_cast<unsigned char>(*c) < 0x20 || *c == 0x7f) {
      *c = ' ';
    }
  }
}

template <typename Body>
int guarded(char* error, size_t capacity, const Body& body) noexcept {
  Capture log;
  try {
    body();
    return 0;
  } catch (const std::bad_alloc&) {
    write_error("out of memory", log.text, error, capacity);
  } catch (const std::exception& failure) {
    write_error(failure.what(), log.text, error, capacity);
  } catch (...) {
    write_error("unknown C++ exception", log.text, error, capacity);
  }
  return 1;
}

void check(Error error, const char* action) {
  if (error != Error::Ok) {
    const char* name = runtime::to_string(error);
    if (std::strncmp(name, "Error::", 7) == 0) {
      name += 7;
    }
    throw Failure(format("%s: %s 0x%02x", action, name, static_cast<unsigned>(error)));
  }
}

// Found in the file by whoever wants to know, without loading it, whether it fits.
__attribute__((used)) const char kStamp[] =
    "omni_programs " OMNI_STRING(OMNI_ABI) " executorch " OMNI_EXECUTORCH_VERSION ";";

// ---- threads -------------------------------------------------------------------------------------

std::mutex pool_mutex;
bool any_loaded = false;

// ---- one program ---------------------------------------------------------------------------------

struct Slot {
  omni_tensor spec = {};
  std::vector<TensorImpl::SizesType> sizes;
  std::vector<TensorImpl::DimOrderType> order;
  std::vector<TensorImpl::StridesType> strides;
  executorch::aten::ScalarType dtype = executorch::aten::ScalarType::Float;
  void* data = nullptr;
};

Slot describe(const char* kind, size_t index, runtime::Result<runtime::Tag> tag,
              runtime::Result<runtime::TensorInfo> (*get)(const runtime::MethodMeta&, size_t),
              const runtime::MethodMeta& meta) {
  check(tag.error(), format("%s %zu", kind, index).c_str());
  if (*tag != runtime::Tag::Tensor) {
    throw Failure(format("%s %zu is no tensor; export with tensors only", kind, index));
  }
  auto info = get(meta, index);
  check(info.error(), format("%s %zu", kind, index).c_str());
  if (info->is_memory_planned()) {
    throw Failure(format(
        "%s %zu lies in the memory plan; export with alloc_graph_input=False and "
        "alloc_graph_output=False",
        kind, index));
  }
  const auto sizes = info->sizes();
  const auto order = info->dim_order();
  if (sizes.size() > OMNI_MAX_RANK) {
    throw Failure(format("%s %zu has %zu dimensions, at most %d are known", kind, index, sizes.size(),
                         OMNI_MAX_RANK));
  }
  Slot slot;
  slot.dtype = info->scalar_type();
  slot.spec.dtype = static_cast<int32_t>(info->scalar_type());
  slot.spec.rank = static_cast<int32_t>(sizes.size());
  slot.spec.bytes = info->nbytes();
  slot.strides.resize(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] < 1) {
      throw Failure(format("%s %zu has size %d in dimension %zu", kind, index, sizes[i], i));
    }
    slot.strides[i] = static_cast<TensorImpl::StridesType>(stride);
    stride *= sizes[i];
    if (stride > INT32_MAX) {
      throw Failure(format("%s %zu has more than 2^31 elements", kind, index));
    }
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i >= order.size() || order[i] != i) {
      throw Failure(format("%s %zu is not stored in row-major order", kind, index));
    }
    slot.spec.sizes[i] = sizes[i];
    slot.sizes.push_back(sizes[i]);
    slot.order.push_back(order[i]);
  }
  return slot;
}

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};

}  // namespace

struct omni_program {
  std::unique_ptr<omni::FileLoader> loader;
  std::optional<runtime::Program> program;
  std::vector<std::unique_ptr<void, FreeDeleter>> arenas;
  std::vector<runtime::Span<uint8_t>> spans;
  std::vector<uint64_t> arena_bytes;
  std::vector<std::string> backends;
  std::optional<runtime::HierarchicalAllocator> planned;
  MallocMemoryAllocator for_method;
  MallocMemoryAllocator for_kernels;
  std::optional<runtime::MemoryManager> memory;
  std::optional<runtime::Method> method;
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;
  bool broken = false;

  void open(const char* path);
  void load(const char* name);
  void describe_all(const runtime::MethodMeta& meta);
  void reserve_arenas(const runtime::MethodMeta& meta);
  void bind_input(size_t index, void* data, uint64_t bytes);
  void bind_output(size_t index, void* data, uint64_t bytes);
  void check_outputs();
  int64_t run();
};

void omni_program::open(const char* path) {
  loader = std::make_unique<omni::FileLoader>(path);
  if (loader->open_error() != 0) {
    throw Failure(format("cannot be opened: %s", std::strerror(loader->open_error())));
  }
  if (!loader->regular()) {
    throw Failure("is no regular file");
  }
  // Before ExecuTorch sees a byte: it would print a wrong identifier as text.
  uint8_t head[8] = {};
  if (loader->bytes() < sizeof head) {
    throw Failure(format("has %zu bytes, too few for a program", loader->bytes()));
  }
  check(loader->load_into(0, sizeof head, {}, head), "cannot be read");
  if (std::memcmp(head + 4, "ET12", 4) != 0) {
    throw Failure(format(
        "is no ExecuTorch program of this version: bytes 4 to 7 are %02x %02x %02x %02x, expected "
        "45 54 31 32 (ET12)",
        head[4], head[5], head[6], head[7]));
  }
  auto loaded =
      runtime::Program::load(loader.get(), runtime::Program::Verification::InternalConsistency);
  check(loaded.error(), "is damaged");
  program.emplace(std::move(*loaded));
}

void omni_program::load(const char* name) {
  std::string known;
  bool found = false;
  for (size_t i = 0; i < program->num_methods(); ++i) {
    auto other = program->get_method_name(i);
    check(other.error(), "has an unreadable method name");
    found = found || std::strcmp(*other, name) == 0;
    known += (i == 0 ? "" : ", ") + std::string(*other).substr(0, 100);
  }
  if (!found) {
    throw Failure(format("has no method '%s'; it has: %s", name, known.c_str()));
  }
  auto meta = program->method_meta(name);
  check(meta.error(), "has an unreadable method");
  describe_all(*meta);
  reserve_arenas(*meta);
  memory.emplace(&for_method, &*planned, &for_kernels);
  loader->map_from_now_on();
  auto loaded = program->load_method(name, &*memory);
  check(loaded.error(), "cannot be loaded");
  method.emplace(std::move(*loaded));
}

void omni_program::describe_all(const runtime::MethodMeta& meta) {
  for (size_t i = 0; i < meta.num_inputs(); ++i) {
    inputs.push_back(describe(
        "input", i, meta.input_tag(i),
        [](const runtime::MethodMeta& m, size_t n) { return m.input_tensor_meta(n); }, meta));
  }
  for (size_t i = 0; i < meta.num_outputs(); ++i) {
    outputs.push_back(describe(
        "output", i, meta.output_tag(i),
        [](const runtime::MethodMeta& m, size_t n) { return m.output_tensor_meta(n); }, meta));
  }
  for (size_t i = 0; i < meta.num_backends(); ++i) {
    auto name = meta.get_backend_name(i);
    check(name.error(), "has an unreadable backend name");
    backends.emplace_back(*name);
  }
}

void omni_program::reserve_arenas(const runtime::MethodMeta& meta) {
  for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    auto bytes = meta.memory_planned_buffer_size(i);
    check(bytes.error(), "has an unreadable memory plan");
    if (*bytes < 0 || *bytes > (int64_t{1} << 40)) {
      throw Failure(format("plans an arena of %lld bytes", static_cast<long long>(*bytes)));
    }
    const size_t size =
        (static_cast<size_t>(*bytes) + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
    void* arena = std::aligned_alloc(kAlignment, size);
    if (arena == nullptr) {
      throw Failure(format("plans an arena of %lld bytes; there is no memory for it",
                           static_cast<long long>(*bytes)));
    }
    arenas.emplace_back(arena);
    // Touched now, so that the first run finds the pages there, and the same values at every start.
    std::memset(arena, 0, size);
    spans.emplace_back(static_cast<uint8_t*>(arena), static_cast<size_t>(*bytes));
    arena_bytes.push_back(static_cast<uint64_t>(*bytes));
  }
  planned.emplace(runtime::Span<runtime::Span<uint8_t>>(spans.data(), spans.size()));
}

namespace {

// True if the byte can be read. The kernel looks, so that nothing faults here.
bool readable(const void* byte) {
  int ends[2];
  if (::pipe(ends) != 0) {
    return true;
  }
  const ssize_t written = ::write(ends[1], byte, 1);
  const bool fault = written < 0 && errno == EFAULT;
  ::close(ends[0]);
  ::close(ends[1]);
  return !fault;
}

void check_room(const Slot& slot, size_t index, const char* kind, const void* data, uint64_t bytes) {
  if (data == nullptr) {
    throw Failure(format("%s %zu: null pointer", kind, index));
  }
  if (bytes != slot.spec.bytes) {
    throw Failure(format("%s %zu: %llu bytes given, %llu expected", kind, index,
                         static_cast<unsigned long long>(bytes),
                         static_cast<unsigned long long>(slot.spec.bytes)));
  }
}

}  // namespace

void omni_program::bind_input(size_t index, void* data, uint64_t bytes) {
  if (index >= inputs.size()) {
    throw Failure(format("input %zu of %zu", index, inputs.size()));
  }
  Slot& slot = inputs[index];
  check_room(slot, index, "input", data, bytes);
  const char* end = static_cast<const char*>(data) + bytes;
  if (!readable(end + kReadAhead - 1)) {
    throw Failure(format(
        "input %zu: the %zu bytes after the array cannot be read, and the kernels may read them; "
        "allocate it with omni_ros.programs.zeros",
        index, kReadAhead));
  }
  TensorImpl impl(slot.dtype, static_cast<ssize_t>(slot.sizes.size()), slot.sizes.data(), data,
                  slot.order.data(), slot.strides.data());
  check(method->set_input(runtime::EValue(Tensor(&impl)), index), "input refused");
  slot.data = data;
}

void omni_program::bind_output(size_t index, void* data, uint64_t bytes) {
  if (index >= outputs.size()) {
    throw Failure(format("output %zu of %zu", index, outputs.size()));
  }
  Slot& slot = outputs[index];
  check_room(slot, index, "output", data, bytes);
  check(method->set_output_data_ptr(data, bytes, index), "output refused");
  slot.data = data;
  check_outputs();
}

// One tensor may be returned twice, or an input be returned: then two slots share one pointer, and
// one buffer would never be written.
void omni_program::check_outputs() {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].data == nullptr) {
      continue;
    }
    const void* now = method->get_output(i).toTensor().const_data_ptr();
    if (now != outputs[i].data) {
      throw Failure(format(
          "output %zu shares its tensor with another input or output; export a copy of it", i));
    }
  }
}

int64_t omni_program::run() {
  if (broken) {
    throw Failure("a former run broke this program; load it again");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].data == nullptr) {
      throw Failure(format("input %zu of %zu is not bound", i, inputs.size()));
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].data == nullptr) {
      throw Failure(format("output %zu of %zu is not bound", i, outputs.size()));
    }
  }
  check_outputs();
  broken = true;
  const auto start = std::chrono::steady_clock::now();
  const Error error = method->execute();
  const auto end = std::chrono::steady_clock::now();
  check(error, "run failed");
  broken = false;
  check_outputs();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count();
}

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
    omni_program** program,
    char* error,
    size_t capacity) {
  *program = nullptr;
  return guarded(error, capacity, [&] {
    prepare_runtime();
    auto loaded = std::make_unique<omni_program>();
    {
      const std::lock_guard<std::mutex> lock(pool_mutex);
      any_loaded = true;
    }
    loaded->open(path);
    loaded->load(method);
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

int omni_run(omni_program* program, int64_t* nanoseconds, char* error, size_t capacity) {
  return guarded(error, capacity, [&] { *nanoseconds = program->run(); });
}

}  // extern "C"
