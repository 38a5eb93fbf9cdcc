// Makes the source of the command table when kvferry is built: generate_table <commands.csv>
// <table.cc>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "protocol/redis_commands/row_reader.h"
#include "protocol/redis_commands/table_writer.h"

namespace {

int fail(const std::string& file, const std::string& why) {
  std::fprintf(stderr, "%s:%s\n", file.c_str(), why.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv, argv + argc);
  if (args.size() != 3) {
    return fail("generate_table", " two arguments are needed: what is read, and what is written");
  }
  std::ifstream in(args[1], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.good() && text.empty()) {
    return fail(args[1], " cannot be read");
  }
  std::string error;
  const std::vector<kvferry::redis::CommandRow> rows =
      kvferry::redis::read_command_rows(text, error);
  if (!error.empty()) {
    return fail(args[1], error);
  }
  std::ofstream out(args[2], std::ios::binary);
  out << kvferry::redis::compose_table(rows);
  out.close();
  return out ? 0 : fail(args[2], " cannot be written");
}
