// Intrusive lists: membership without allocation. An object says at its top which lists it can be
// in.
//
// Ownership: a list never owns its members. A hook must be unlinked before its object dies (checked
//            in debug builds).
// Threads:   one.
#pragma once

#include <cstddef>

#include "base/check.h"

namespace kvferry::base {

/// Base of members of a doubly linked list; Tag tells the lists of one object apart.
template <typename Tag>
class ListHook {
 public:
  ListHook() = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { KVF_DCHECK(!is_linked()); }

  bool is_linked() const noexcept { return next_ != nullptr; }
  /// Leaves whatever list this is in. Does nothing when in none.
  void unlink() noexcept {
    if (next_ != nullptr) {
      next_->prev_ = prev_;
      prev_->next_ = next_;
      next_ = prev_ = nullptr;
    }
  }

 private:
  template <typename T, typename U>
  friend class List;
  ListHook* next_ = nullptr;
  ListHook* prev_ = nullptr;
};

/// Circular doubly linked list of T, which derives from ListHook<Tag>.
template <typename T, typename Tag>
class List {
 public:
  List() noexcept { root_.next_ = root_.prev_ = &root_; }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    KVF_DCHECK(empty());
    root_.next_ = root_.prev_ = nullptr;
  }

  bool empty() const noexcept { return root_.next_ == &root_; }
  T* front() noexcept { return empty() ? nullptr : owner(root_.next_); }
  T* back() noexcept { return empty() ? nullptr : owner(root_.prev_); }
  /// The member after `member`, or null.
  T* next(T& member) noexcept {
    ListHook<Tag>* hook = static_cast<ListHook<Tag>&>(member).next_;
    return hook == &root_ ? nullptr : owner(hook);
  }
  void push_back(T& member) noexcept { insert_before(&root_, member); }
  void push_front(T& member) noexcept { insert_before(root_.next_, member); }
  T* pop_front() noexcept {
    T* first = front();
    if (first != nullptr) {
      static_cast<ListHook<Tag>*>(first)->unlink();
    }
    return first;
  }

 private:
  using Hook = ListHook<Tag>;
  static T* owner(Hook* hook) noexcept { return static_cast<T*>(hook); }
  void insert_before(Hook* place, T& member) noexcept {
    Hook& hook = member;
    KVF_DCHECK(!hook.is_linked());
    hook.next_ = place;
    hook.prev_ = place->prev_;
    place->prev_->next_ = &hook;
    place->prev_ = &hook;
  }
  Hook root_;
};

/// Singly linked FIFO over a `T* T::*Next` member; the cheapest queue there is. Members are in at
/// most one at a time.
template <typename T, T* T::* Next>
class Fifo {
 public:
  bool empty() const noexcept { return head_ == nullptr; }
  T* front() const noexcept { return head_; }
  void push_back(T& member) noexcept {
    member.*Next = nullptr;
    if (head_ == nullptr) {
      head_ = &member;
    } else {
      tail_->*Next = &member;
    }
    tail_ = &member;
  }
  T* pop_front() noexcept {
    T* first = head_;
    if (first != nullptr) {
      head_ = first->*Next;
      first->*Next = nullptr;
    }
    return first;
  }

 private:
  T* head_ = nullptr;
  T* tail_ = nullptr;
};

}  // namespace kvferry::base
