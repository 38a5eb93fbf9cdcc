#include "config/text_file.h"

#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <memory>

namespace kvferry::config {
base::Result<std::string> read_text_file(const std::string& path, std::size_t bytes_max) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             &std::fclose);
  if (!file) {
    return base::Error::from_errno(fmt::format("cannot read '{}'", path), errno);
  }
  std::string text(bytes_max, '\0');
  const std::size_t size = std::fread(text.data(), 1, text.size(), file.get());
  if (std::ferror(file.get()) != 0) {
    return base::Error::from_errno(fmt::format("cannot read '{}'", path), errno);
  }
  text.resize(size);
  return text;
}

}  // namespace kvferry::config
