// Delegate: a member function bound to an object, two words, never allocates. The callback type of
// loops and timers.
#pragma once

#include <utility>

namespace kvferry::base {

template <typename Signature>
class Delegate;

template <typename R, typename... Args>
class Delegate<R(Args...)> {
 public:
  Delegate() = default;

  /// Binds `object->*Method`. The object must outlive every call.
  template <auto Method, typename T>
  static Delegate to(T* object) noexcept {
    Delegate made;
    made.object_ = object;
    made.call_ = [](void* target, Args... args) -> R {
      return (static_cast<T*>(target)->*Method)(std::forward<Args>(args)...);
    };
    return made;
  }

  explicit operator bool() const noexcept { return call_ != nullptr; }
  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_ = nullptr;
  R (*call_)(void*, Args...) = nullptr;
};

}  // namespace kvferry::base
