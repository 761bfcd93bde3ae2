// Copyright 2026 The omni_ros authors
// SPDX-License-Identifier: Apache-2.0
//
// One loaded method of one file.
#ifndef OMNI_PROGRAM_H_
#define OMNI_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>

#include "file_loader.h"
#include "omni_programs.h"

namespace omni {

// An input or output: what it is, in ExecuTorch's words too, and the memory bound to it.
struct Slot {
  omni_tensor spec = {};
  std::vector<executorch::aten::TensorImpl::SizesType> sizes;
  std::vector<executorch::aten::TensorImpl::DimOrderType> order;
  std::vector<executorch::aten::TensorImpl::StridesType> strides;
  executorch::aten::ScalarType dtype = executorch::aten::ScalarType::Float;
  void* data = nullptr;
};

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};

}  // namespace omni

// All members throw omni::Failure.
struct omni_program {
  std::unique_ptr<omni::FileLoader> loader;
  std::optional<executorch::runtime::Program> program;
  std::vector<std::unique_ptr<void, omni::FreeDeleter>> arenas;
  std::vector<executorch::runtime::Span<uint8_t>> spans;
  std::vector<uint64_t> arena_bytes;
  std::vector<std::string> backends;
  std::optional<executorch::runtime::HierarchicalAllocator> planned;
  executorch::extension::MallocMemoryAllocator for_method;
  executorch::extension::MallocMemoryAllocator for_kernels;
  std::optional<executorch::runtime::MemoryManager> memory;
  std::optional<executorch::runtime::Method> method;
  std::vector<omni::Slot> inputs;
  std::vector<omni::Slot> outputs;
  bool broken = false;

  void open(const char* path);
  void load(const char* name);
  void describe_all(const executorch::runtime::MethodMeta& meta);
  void reserve_arenas(const executorch::runtime::MethodMeta& meta);
  void bind_input(size_t index, void* data, uint64_t bytes);
  void bind_output(size_t index, void* data, uint64_t bytes);
  void point(const omni_pointers& to_inputs, const omni_pointers& to_outputs);
  void point_input(size_t index, void* data);
  void check_outputs();
  int64_t run();
};

#endif  // OMNI_PROGRAM_H_
