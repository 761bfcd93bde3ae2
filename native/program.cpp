// Copyright 2026 The omni_ros authors
// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include <executorch/runtime/core/portable_type/scalar_type.h>

#include "guard.h"

namespace runtime = executorch::runtime;
using executorch::aten::Tensor;
using executorch::aten::TensorImpl;
using omni::check;
using omni::Failure;
using omni::format;
using omni::Slot;
using runtime::Error;

namespace {

// XNNPACK may read this far past the end of an input (its XNN_EXTRA_BYTES is 16 on CPUs).
constexpr size_t kReadAhead = 16;
constexpr size_t kAlignment = 64;

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
    throw Failure(format("%s %zu has %zu dimensions, at most %d are known", kind, index,
                         sizes.size(), OMNI_MAX_RANK));
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

void check_room(
    const Slot& slot, size_t index, const char* kind, const void* data, uint64_t bytes) {
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
  point_input(index, data);
}

void omni_program::point_input(size_t index, void* data) {
  Slot& slot = inputs[index];
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

void omni_program::point(const omni_pointers& to_inputs, const omni_pointers& to_outputs) {
  for (size_t i = 0; i < to_inputs.count; ++i) {
    if (to_inputs.indices[i] >= inputs.size()) {
      throw Failure(format("input %u of %zu", to_inputs.indices[i], inputs.size()));
    }
    point_input(to_inputs.indices[i], to_inputs.data[i]);
  }
  for (size_t i = 0; i < to_outputs.count; ++i) {
    const uint32_t index = to_outputs.indices[i];
    if (index >= outputs.size()) {
      throw Failure(format("output %u of %zu", index, outputs.size()));
    }
    check(method->set_output_data_ptr(to_outputs.data[i], outputs[index].spec.bytes, index),
          "output refused");
    outputs[index].data = to_outputs.data[i];
  }
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
