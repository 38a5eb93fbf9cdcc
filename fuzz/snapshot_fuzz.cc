// Snapshots: pieces give what the whole gives, and what is accepted is the same again when it was
// written and read once more.
//
// Byte 0 chooses the cuts. Byte 1 even: the rest is a file. Odd: the rest is what lies in the
// blocks of one, cut at the bytes 0xff 0x00; its heads and checksums are made, since no luck finds
// those.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/fuzz_support.h"
#include "store/snapshot_reader.h"
#include "store/snapshot_writer.h"

namespace kvferry::store {
namespace {

using fuzz::PieceSizes;
using fuzz::require;

class TextSink final : public SnapshotSink {
 public:
  bool write(std::string_view bytes) override {
    text += bytes;
    return true;
  }
  std::string text;
};

/// Notes everything, and writes it again.
class Notes final : public SnapshotHandler {
 public:
  void on_head(const SnapshotHead& head) override {
    require(writer == nullptr);
    writer = std::make_unique<SnapshotWriter>(again, head);
  }
  void on_item(const SnapshotItem& item) override {
    require(left == 0 && !item.key.empty() && item.key.size() <= kKeyBytesMax);
    require(item.value_bytes <= kSnapshotValueBytesMax);
    left = item.value_bytes;
    writer->add(item);
    text.append(item.key).append(" ").append(std::to_string(item.value_bytes)).append(" ");
  }
  void on_value(std::string_view bytes) override {
    require(!bytes.empty() && bytes.size() <= left);
    left -= bytes.size();
    writer->add_value(bytes);
    text.append(bytes);
  }
  void on_item_end() override {
    require(left == 0);
    text += "\n";
  }

  std::string text;
  TextSink again;
  std::unique_ptr<SnapshotWriter> writer;
  std::size_t left = 0;
};

struct Outcome {
  std::string text;
  std::string again;
  std::optional<SnapshotError> error;
};

Outcome play(std::string_view bytes, std::uint8_t seed, bool is_cut) {
  Notes notes;
  SnapshotReader reader(notes);
  PieceSizes sizes(seed);
  bool is_good = true;
  while (is_good && !bytes.empty()) {
    const std::size_t size = is_cut ? sizes.next(bytes.size()) : bytes.size();
    is_good = reader.take(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  is_good = is_good && reader.finish();
  require(is_good == !reader.error().has_value());
  if (is_good) {
    notes.writer->finish();
  }
  return {.text = notes.text, .again = notes.again.text, .error = reader.error()};
}

void append_block(std::string& file, SnapshotBlock kind, std::uint64_t number,
                  std::string_view payload) {
  const SnapshotBlockHead head = compose_snapshot_block_head(kind, number, payload);
  file.append(head.data(), head.size()).append(payload);
}

/// A file whose blocks hold `input`, with an end that counts what an accepting reader counts.
std::string wrap(std::string_view input) {
  const SnapshotHeader header = compose_snapshot_header({.last_cas = 9});
  std::string file(header.data(), header.size());
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  std::string all;
  constexpr std::string_view kCut("\xff\x00", 2);
  while (!input.empty()) {
    const std::string_view part =
        input.substr(0, std::min(input.find(kCut), kSnapshotPayloadBytesMax));
    input.remove_prefix(part.size());
    input.remove_prefix(input.starts_with(kCut) ? kCut.size() : 0);
    if (!part.empty()) {
      append_block(file, SnapshotBlock::Items, number++, part);
      bytes += part.size();
      all += part;
    }
  }
  std::uint64_t items = 0;
  for (std::size_t at = 0; at + kSnapshotItemHeadBytes <= all.size(); ++items) {
    at += kSnapshotItemHeadBytes + static_cast<unsigned char>(all[at + 1]) +
          get_number<std::uint32_t>(all.data() + at + 4);
  }
  std::string end(kSnapshotEndBytes, '\0');
  put_number(end.data(), items);
  put_number(end.data() + 8, bytes);
  append_block(file, SnapshotBlock::End, number, end);
  return file;
}

void run(std::uint8_t seed, std::uint8_t form, std::string_view input) {
  const std::string file = form % 2 == 0 ? std::string(input) : wrap(input);
  const Outcome whole = play(file, 0, false);
  const Outcome cut = play(file, seed, true);
  require(whole.text == cut.text && whole.error == cut.error);
  if (!whole.error) {
    const Outcome again = play(whole.again, seed, true);
    require(!again.error && again.text == whole.text && again.again == whole.again);
  }
}

}  // namespace
}  // namespace kvferry::store

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size >= 2) {
    kvferry::store::run(data[0], data[1],
                        std::string_view(reinterpret_cast<const char*>(data) + 2, size - 2));
  }
  return 0;
}
