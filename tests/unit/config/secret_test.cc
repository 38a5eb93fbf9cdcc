#include "config/secret.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "config/loader.h"
#include "tests/support/temp_folder.h"

namespace kvferry::config {
namespace {

class SecretFile : public testing::Test {
 protected:
  void SetUp() override { write("hunter2\n"); }

  void write(const std::string& text) {
    folder_.write("secret.txt", text);
    protect(std::filesystem::perms::owner_read);
  }
  void protect(std::filesystem::perms perms) {
    std::filesystem::permissions(path_, perms | std::filesystem::perms::owner_write);
  }
  Secret secret() const { return {Secret::Kind::File, path_}; }

  const test::TempFolder folder_;
  const std::string path_ = folder_.file("secret.txt");
};

TEST_F(SecretFile, IsReadWithoutItsLineEnd) {
  EXPECT_EQ(*read_secret(secret()), "hunter2");
  write("hunter2\r\n");
  EXPECT_EQ(*read_secret(secret()), "hunter2");
  write("two\n\n");
  EXPECT_EQ(*read_secret(secret()), "two\n");
}

TEST_F(SecretFile, MayHaveUpTo512Bytes) {
  for (const std::size_t size : {kSecretBytesMax - 1, kSecretBytesMax}) {
    write(std::string(size, 'x') + "\n");
    EXPECT_TRUE(read_secret(secret())) << size;
  }
  write(std::string(kSecretBytesMax + 1, 'x') + "\n");
  EXPECT_FALSE(read_secret(secret()));
  write("\n");
  EXPECT_FALSE(read_secret(secret()));
}

TEST_F(SecretFile, IsExposedWhenOthersMayUseIt) {
  EXPECT_FALSE(is_exposed(secret()));
  protect(std::filesystem::perms::group_read);
  EXPECT_TRUE(is_exposed(secret()));
  protect(std::filesystem::perms::others_write);
  EXPECT_TRUE(is_exposed(secret()));
}

TEST_F(SecretFile, IsWarnedOfByTheLoader) {
  protect(std::filesystem::perms::others_read);
  folder_.write("secret.yml", "kvferry: {admin: {listen: h:1, token: \"file:" + path_ + "\"}}\n");
  const Loaded loaded = load({folder_.file("secret.yml")});
  ASSERT_TRUE(loaded.model) << loaded.text();
  ASSERT_EQ(loaded.problems.size(), 1U);
  EXPECT_EQ(loaded.problems[0].code, "W40");
  EXPECT_EQ(loaded.problems[0].where.line, 1U);
}

TEST(Secret, StandsInTheTextOrTheEnvironment) {
  EXPECT_EQ(*read_secret({}), "");
  EXPECT_EQ(*read_secret({Secret::Kind::Text, "plain"}), "plain");
  ASSERT_EQ(::setenv("KVFERRY_SECRET_TEST", "from env", 1), 0);
  EXPECT_EQ(*read_secret({Secret::Kind::Environment, "KVFERRY_SECRET_TEST"}), "from env");
  ASSERT_EQ(::unsetenv("KVFERRY_SECRET_TEST"), 0);
  const base::Result<std::string> missing =
      read_secret({Secret::Kind::Environment, "KVFERRY_SECRET_TEST"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().text(),
            "the secret from env:KVFERRY_SECRET_TEST must have 1 to 512 bytes, found 0");
}

TEST(Secret, SaysWhyItsFileCannotBeRead) {
  const base::Result<std::string> missing = read_secret({Secret::Kind::File, "/nonexistent/pw"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().text(), "cannot read '/nonexistent/pw': No such file or directory");
}

}  // namespace
}  // namespace kvferry::config
