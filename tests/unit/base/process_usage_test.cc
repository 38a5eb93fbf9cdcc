#include "base/process_usage.h"

#include <cstring>
#include <optional>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

namespace kvferry::base {
namespace {

TEST(ProcessUsage, ReadsTheSecondNumberOfStatm) {
  EXPECT_EQ(parse_statm_resident("12345 678 90 1 0 2 0\n", 4096), 678U * 4096U);
  EXPECT_EQ(parse_statm_resident("1 0 0", 4096), 0U);
}

TEST(ProcessUsage, RefusesTextThatIsNotStatm) {
  for (const char* text : {"", "12345", "12345 ", "12345 x ", "12345 678", "12345 678x 1"}) {
    EXPECT_EQ(parse_statm_resident(text, 4096), std::nullopt) << text;
  }
}

TEST(ProcessUsage, ResidentBytesGrowWithMemoryThatIsTouched) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const ProcessUsage before = read_process_usage();
  std::vector<char> memory(kBytes);
  std::memset(memory.data(), 1, memory.size());
  const ProcessUsage after = read_process_usage();
  EXPECT_EQ(memory[kBytes / 2], 1);
  EXPECT_GT(before.resident_bytes, 0U);
  EXPECT_GE(after.resident_bytes, before.resident_bytes + kBytes / 2);
}

TEST(ProcessUsage, CountsDescriptors) {
  const ProcessUsage before = read_process_usage();
  const int extra = dup(STDERR_FILENO);
  ASSERT_GE(extra, 0);
  const ProcessUsage after = read_process_usage();
  close(extra);
  EXPECT_EQ(after.open_descriptors, before.open_descriptors + 1);
  EXPECT_GT(after.descriptors_max, after.open_descriptors);
}

}  // namespace
}  // namespace kvferry::base
