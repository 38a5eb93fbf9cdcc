// A folder of a test's own, gone with it. Tests run side by side, each in a process of its own, so
// a name that two of them could share is a fault of the tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "base/check.h"

namespace kvferry::test {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "kvf-test-XXXXXX").string();
    KVF_CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, std::string_view text) const {
    std::ofstream out(file(name), std::ios::binary);
    out << text;
    out.close();
    KVF_CHECK(out.good());
  }

 private:
  std::string path_;
};

}  // namespace kvferry::test
