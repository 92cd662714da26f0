// What `cpp/pool.cc` uses of the bridge: here a task is a function of C++.

#pragma once

#include <cstddef>
#include <cstdlib>
#include <functional>

namespace blockcell {

struct Task {
  void run(std::size_t begin, std::size_t end) const noexcept {
    for (; begin < end; ++begin) work(begin);
  }

  std::function<void(std::size_t)> work;
};

inline bool moves_threads() { return std::getenv("BLOCKCELL_MOVE_THREADS") != nullptr; }

}  // namespace blockcell
