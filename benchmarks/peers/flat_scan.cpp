// The skyline of a count window by plain scanning, as fast as a compiler makes it: the bar for every cleverer way.
//
//   g++ -O3 -march=native flat_scan.cpp -o flat_scan
//   flat_scan FILE D N LENGTH      FILE holds N rows of D float64 one after the other; smaller is better
//
// A row that a later one dominates never returns, so each arrival is compared with the rows that are left, column by
// column and without branches, and those that it dominates go. Printed: how many rows were kept at most, how many were in
// the skyline when they came, how many are in the last one, and rows a second, by the processor's clock, of the scan alone.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace {

constexpr std::size_t kBlock = 512;

template <int D>
class Window {
 public:
  explicit Window(long length) : length_(length) { reserve(1 << 12); }

  // Whether nothing that lives dominates the row, which then lives too.
  bool arrive(const double* row, long now) {
    while (first_ < end_ && since_[first_] + length_ <= now) ++first_;
    if (end_ == since_.size()) make_room();
    std::array<double, D> r;
    std::copy(row, row + D, r.begin());
    std::array<const double*, D> columns;
    for (int k = 0; k < D; ++k) columns[k] = values_[k].data();
    std::array<unsigned char, kBlock> goes;
    unsigned char beaten = 0;
    std::size_t to = first_;
    for (std::size_t from = first_; from < end_; from += kBlock) {
      const std::size_t many = std::min(kBlock, end_ - from);
      unsigned char some = 0;
      for (std::size_t i = 0; i < many; ++i) {
        unsigned char at_most = 1, at_least = 1;
        for (int k = 0; k < D; ++k) {
          const double value = columns[k][from + i];
          at_most &= static_cast<unsigned char>(value <= r[k]);
          at_least &= static_cast<unsigned char>(value >= r[k]);
        }
        goes[i] = at_least > at_most;
        some |= goes[i];
        beaten |= at_most > at_least;
      }
      if (!some && to == from) {
        to += many;
        continue;
      }
      for (std::size_t i = 0; i < many; ++i) {
        if (goes[i]) continue;
        for (int k = 0; k < D; ++k) values_[k][to] = values_[k][from + i];
        since_[to++] = since_[from + i];
      }
    }
    for (int k = 0; k < D; ++k) values_[k][to] = r[k];
    since_[to] = now;
    end_ = to + 1;
    most_ = std::max(most_, end_ - first_);
    return !beaten;
  }

  std::size_t most() const { return most_; }

  std::size_t skyline() const {
    std::size_t members = 0;
    for (std::size_t i = first_; i < end_; ++i) {
      bool free = true;
      for (std::size_t j = first_; j < end_ && free; ++j) {
        bool at_most = true, less = false;
        for (int k = 0; k < D; ++k) {
          at_most = at_most && values_[k][j] <= values_[k][i];
          less = less || values_[k][j] < values_[k][i];
        }
        free = !(at_most && less);
      }
      members += free;
    }
    return members;
  }

 private:
  void reserve(std::size_t room) {
    for (auto& column : values_) column.resize(room);
    since_.resize(room);
  }

  // Rows that expired leave room at the front; where they are few, there is more at the end.
  void make_room() {
    if (first_ < end_ / 2) return reserve(2 * since_.size());
    for (auto& column : values_) std::copy(column.begin() + first_, column.begin() + end_, column.begin());
    std::copy(since_.begin() + first_, since_.begin() + end_, since_.begin());
    end_ -= first_;
    first_ = 0;
  }

  long length_;
  std::size_t first_ = 0, end_ = 0, most_ = 0;
  std::array<std::vector<double>, D> values_;
  std::vector<long> since_;
};

template <int D>
int run(const std::vector<double>& rows, long n, long length) {
  const std::clock_t start = std::clock();
  Window<D> window(length);
  long entered = 0;
  for (long row = 0; row < n; ++row) entered += window.arrive(rows.data() + row * D, row);
  const double taken = std::max(1e-9, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  std::printf("kept %zu entered %ld last %zu rows_per_second %.0f\n", window.most(), entered, window.skyline(),
              static_cast<double>(n) / taken);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fputs("flat_scan FILE D N LENGTH\n", stderr), 2;
  const long d = std::atol(argv[2]), n = std::atol(argv[3]), length = std::atol(argv[4]);
  if (d < 2 || d > 6 || n < 1 || length < 1) return std::fputs("D is 2 to 6, N and LENGTH are 1 or more\n", stderr), 2;
  std::vector<double> rows(static_cast<std::size_t>(n * d));
  std::FILE* file = std::fopen(argv[1], "rb");
  if (!file || std::fread(rows.data(), sizeof(double), rows.size(), file) != rows.size()) {
    return std::fprintf(stderr, "%s does not hold so many rows\n", argv[1]), 2;
  }
  std::fclose(file);
  switch (d) {
    case 2: return run<2>(rows, n, length);
    case 3: return run<3>(rows, n, length);
    case 4: return run<4>(rows, n, length);
    case 5: return run<5>(rows, n, length);
    default: return run<6>(rows, n, length);
  }
}
