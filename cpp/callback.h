// Callbacks that every build of TensorFlow 1.15 can call.
//
// How the running TensorFlow calls a std::function depends on the GCC that built it. From GCC 5 on
// the arguments are passed by reference, with GCC 4.8 by value. Python's TensorFlow 1.15.5 is built
// by GCC 7.3, Java's 1.15.0 by GCC 4.8.

#ifndef BLOCKCELL_CPP_CALLBACK_H_
#define BLOCKCELL_CPP_CALLBACK_H_

#include <functional>

#include "tensorflow/core/lib/core/status.h"

namespace blockcell {

#ifdef BLOCKCELL_TENSORFLOW_1
// Whether the running TensorFlow passes the arguments of a std::function by reference.
bool PassesReferences();
#endif

// A function of one pointer, for TensorFlow to call.
template <typename T>
using Callback = std::function<tensorflow::Status(T*)>;

// Makes `function` one that the running TensorFlow can call.
template <typename T>
Callback<T> CallbackOf(Callback<T> function) {
#ifdef BLOCKCELL_TENSORFLOW_1
  if (!PassesReferences()) {
    // A reference is passed as an address, which is what GCC 4.8 makes of a pointer.
    std::function<tensorflow::Status(T&)> by_value = [function](T& value) {
      return function(&value);
    };
    return reinterpret_cast<Callback<T>&>(by_value);
  }
#endif
  return function;
}

}  // namespace blockcell

#endif  // BLOCKCELL_CPP_CALLBACK_H_
