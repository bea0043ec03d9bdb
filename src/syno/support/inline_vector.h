// A vector whose first N elements need no heap: what partial graphs are made of, because a search copies them by the
// million. It has the part of std::vector's interface that is used here, and converts to std::vector and back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace syno {

template <class T, std::size_t N>
class InlineVector {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;
  using reverse_iterator = std::reverse_iterator<T*>;
  using const_reverse_iterator = std::reverse_iterator<const T*>;

  InlineVector() noexcept : data_(local()) {}
  InlineVector(std::initializer_list<T> items) : InlineVector() {
    append(items.begin(), items.end());
  }
  template <std::forward_iterator Iterator>
  InlineVector(Iterator first, Iterator last) : InlineVector() {
    append(first, last);
  }
  InlineVector(const std::vector<T>& items)  // NOLINT(google-explicit-constructor): a drop-in
      : InlineVector(items.begin(), items.end()) {}
  InlineVector(const InlineVector& other) : InlineVector() { append(other.begin(), other.end()); }
  InlineVector(InlineVector&& other) noexcept : InlineVector() { take(std::move(other)); }
  ~InlineVector() { release(); }

  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) {
      clear();
      append(other.begin(), other.end());
    }
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) {
      release();
      take(std::move(other));
    }
    return *this;
  }

#if defined(__GNUC__)
  [[gnu::noinline]]  // inlined, it gives GCC 12 false alarms about what happens to the vector
#endif
  operator std::vector<T>() const {  // NOLINT(google-explicit-constructor): a drop-in
    return std::vector<T>(begin(), end());
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t capacity() const { return capacity_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  const T* cbegin() const { return begin(); }
  const T* cend() const { return end(); }
  reverse_iterator rbegin() { return reverse_iterator(end()); }
  reverse_iterator rend() { return reverse_iterator(begin()); }
  const_reverse_iterator rbegin() const { return const_reverse_iterator(end()); }
  const_reverse_iterator rend() const { return const_reverse_iterator(begin()); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& front() { return *begin(); }
  const T& front() const { return *begin(); }
  T& back() { return end()[-1]; }
  const T& back() const { return end()[-1]; }

  void reserve(std::size_t count) {
    if (count > capacity_) grow(count);
  }
  void clear() {
    std::destroy(begin(), end());
    size_ = 0;
  }
  void resize(std::size_t count) {
    reserve(count);
    if (count < size_) {
      std::destroy(begin() + count, end());
    } else {
      std::uninitialized_value_construct(end(), begin() + count);
    }
    size_ = static_cast<std::uint32_t>(count);
  }
  void assign(std::size_t count, const T& value) {
    const T copy = value;
    clear();
    reserve(count);
    std::uninitialized_fill_n(begin(), count, copy);
    size_ = static_cast<std::uint32_t>(count);
  }
  void push_back(const T& item) { emplace_back(item); }
  void push_back(T&& item) { emplace_back(std::move(item)); }
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    if (size_ < capacity_) return *construct(std::forward<Arguments>(arguments)...);
    // The arguments may lie in this vector.
    T item{std::forward<Arguments>(arguments)...};
    grow(2 * capacity_);
    return *construct(std::move(item));
  }
  void pop_back() {
    std::destroy_at(end() - 1);
    --size_;
  }
  T* insert(const T* place, T item) {
    const std::ptrdiff_t at = place - begin();
    emplace_back(std::move(item));
    std::rotate(begin() + at, end() - 1, end());
    return begin() + at;
  }
  T* erase(const T* place) { return erase(place, place + 1); }
  T* erase(const T* first, const T* last) {
    T* to = begin() + (first - begin());
    if (first == last) return to;
    T* new_end = std::move(begin() + (last - begin()), end(), to);
    std::destroy(new_end, end());
    size_ = static_cast<std::uint32_t>(new_end - begin());
    return to;
  }

  friend bool operator==(const InlineVector& a, const InlineVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator<(const InlineVector& a, const InlineVector& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  bool on_heap() const { return capacity_ > N; }
  T* local() { return reinterpret_cast<T*>(local_); }

  template <class... Arguments>
  T* construct(Arguments&&... arguments) {
    T* place = std::construct_at(data() + size_, T{std::forward<Arguments>(arguments)...});
    ++size_;
    return place;
  }
  template <class Iterator>
  void append(Iterator first, Iterator last) {
    const auto count = static_cast<std::size_t>(std::distance(first, last));
    reserve(size_ + count);
    std::uninitialized_copy(first, last, end());
    size_ = static_cast<std::uint32_t>(size_ + count);
  }
  void grow(std::size_t count) {
    T* bigger = std::allocator<T>().allocate(count);
    std::uninitialized_move(begin(), end(), bigger);
    const std::uint32_t size = size_;
    release();
    data_ = bigger;
    size_ = size;
    capacity_ = static_cast<std::uint32_t>(count);
  }
  /// Destroys the elements and gives memory back; the vector is then empty.
  void release() {
    std::destroy(begin(), end());
    if (on_heap()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = local();
    size_ = 0;
    capacity_ = N;
  }
  /// From the empty state.
  void take(InlineVector&& other) {
    if (other.on_heap()) {
      data_ = std::exchange(other.data_, other.local());
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, static_cast<std::uint32_t>(N));
    } else {
      std::uninitialized_move(other.begin(), other.end(), local());
      size_ = other.size_;
      other.clear();
    }
  }

  T* data_;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = N;
  alignas(
      T) std::byte local_[N * sizeof(T)];  // NOLINT(bugprone-sizeof-expression): T may be a pointer
};

}  // namespace syno
