// Runs a fuzz target over files and folders of inputs, with any compiler: the corpus as a test.
//
//   request_parser_fuzz fuzz/corpus/request_parser
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

/// The input lies in an allocation of its exact size, so that sanitizers see a read behind it.
void run_bytes(const std::string& text, std::size_t size) {
  const auto bytes = std::make_unique<std::uint8_t[]>(size);
  for (std::size_t at = 0; at < size; ++at) {
    bytes[at] = static_cast<std::uint8_t>(text[at]);
  }
  LLVMFuzzerTestOneInput(bytes.get(), size);
}

/// Runs the file and each of its prefixes up to a bound, which costs little and reaches every
/// "needs more" of a parser.
bool run_file(const std::filesystem::path& path) {
  constexpr std::size_t kPrefixesMax = 256;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    static_cast<void>(std::fprintf(stderr, "%s: cannot be read\n", path.c_str()));
    return false;
  }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (std::size_t size = 0; size < text.size() && size < kPrefixesMax; ++size) {
    run_bytes(text, size);
  }
  run_bytes(text, text.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 0;
  for (int index = 1; index < argc; ++index) {
    const std::filesystem::path path = argv[index];
    if (!std::filesystem::is_directory(path)) {
      if (!run_file(path)) {
        return 1;
      }
      ++count;
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.is_regular_file() && !run_file(entry.path())) {
        return 1;
      }
      ++count;
    }
  }
  static_cast<void>(std::printf("%zu inputs\n", count));
  if (count == 0) {
    static_cast<void>(std::fprintf(stderr, "no inputs: give files or folders\n"));
    return 1;
  }
  return 0;
}
