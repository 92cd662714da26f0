// What `cpp/pool.cc` uses of the bridge: here a task is a function of C++.

#ifndef BLOCKCELL_TESTS_POOL_BRIDGE_H_
#define BLOCKCELL_TESTS_POOL_BRIDGE_H_

#include <cstddef>
#include <functional>

namespace blockcell {

struct Task {
  void run(std::size_t begin, std::size_t end) const noexcept {
    for (; begin < end; ++begin) work(begin);
  }

  std::function<void(std::size_t)> work;
};

}  // namespace blockcell

#endif  // BLOCKCELL_TESTS_POOL_BRIDGE_H_
