// Copyright 2026 The omni_ros authors
// SPDX-License-Identifier: Apache-2.0
//
// How program files reach the runtime. What stays for the program's life is copied to the heap: a
// mapping would turn a file that someone truncates later into SIGBUS. What a backend reads once,
// while it packs the weights, is mapped: no second copy of the weights while loading.
#ifndef OMNI_FILE_LOADER_H_
#define OMNI_FILE_LOADER_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include <executorch/runtime/core/data_loader.h>

namespace omni {

class FileLoader final : public executorch::runtime::DataLoader {
 public:
  explicit FileLoader(const char* path)
      : fd_(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)), errno_(fd_ < 0 ? errno : 0) {
    struct stat status = {};
    if (fd_ >= 0 && ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode)) {
      regular_ = true;
      size_ = static_cast<size_t>(status.st_size);
    }
  }
  ~FileLoader() override {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  FileLoader(const FileLoader&) = delete;
  FileLoader& operator=(const FileLoader&) = delete;

  int open_error() const { return errno_; }
  bool regular() const { return regular_; }
  size_t bytes() const { return size_; }

  // From now on what is loaded is read once and then freed.
  void map_from_now_on() { map_ = true; }

  executorch::runtime::Result<executorch::runtime::FreeableBuffer>
  load(size_t offset, size_t size, const SegmentInfo&) const override {
    using executorch::runtime::Error;
    using executorch::runtime::FreeableBuffer;
    if (offset > size_ || size > size_ - offset) {
      ET_LOG(Error, "bytes %zu..+%zu lie outside the file's %zu", offset, size, size_);
      return Error::InvalidProgram;
    }
    if (size == 0) {
      return FreeableBuffer(nullptr, 0, nullptr);
    }
    return map_ ? map(offset, size) : copy(offset, size);
  }

  executorch::runtime::Error
  load_into(size_t offset, size_t size, const SegmentInfo&, void* buffer) const override {
    using executorch::runtime::Error;
    if (offset > size_ || size > size_ - offset) {
      return Error::InvalidProgram;
    }
    return read(offset, size, buffer) ? Error::Ok : Error::AccessFailed;
  }

  executorch::runtime::Result<size_t> size() const override { return size_; }

 private:
  using Buffer = executorch::runtime::FreeableBuffer;

  executorch::runtime::Result<Buffer> copy(size_t offset, size_t size) const {
    using executorch::runtime::Error;
    constexpr size_t kAlignment = 64;
    void* data = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
    if (data == nullptr) {
      return Error::MemoryAllocationFailed;
    }
    if (!read(offset, size, data)) {
      std::free(data);
      return Error::AccessFailed;
    }
    return Buffer(data, size, [](void*, void* memory, size_t) { std::free(memory); });
  }

  executorch::runtime::Result<Buffer> map(size_t offset, size_t size) const {
    using executorch::runtime::Error;
    const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t before = offset % page;
    void* start = ::mmap(
        nullptr, size + before, PROT_READ, MAP_PRIVATE, fd_, static_cast<off_t>(offset - before));
    if (start == MAP_FAILED) {
      return Error::MemoryAllocationFailed;
    }
    return Buffer(
        static_cast<char*>(start) + before,
        size,
        [](void* context, void* data, size_t bytes) {
          const size_t lead = reinterpret_cast<size_t>(context);
          ::munmap(static_cast<char*>(data) - lead, bytes + lead);
        },
        reinterpret_cast<void*>(before));
  }

  bool read(size_t offset, size_t size, void* buffer) const {
    char* to = static_cast<char*>(buffer);
    while (size > 0) {
      const ssize_t got = ::pread(fd_, to, size, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got <= 0) {
        return false;
      }
      to += got;
      offset += static_cast<size_t>(got);
      size -= static_cast<size_t>(got);
    }
    return true;
  }

  int fd_;
  int errno_;
  bool regular_ = false;
  bool map_ = false;
  size_t size_ = 0;
};

}  // namespace omni

#endif  // OMNI_FILE_LOADER_H_
