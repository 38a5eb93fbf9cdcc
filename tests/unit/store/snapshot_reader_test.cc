// The bytes of snapshots: written, read in pieces, and refused.
#include "store/snapshot_reader.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "store/snapshot_writer.h"
#include "tests/support/splitter.h"

namespace kvferry::store {
namespace {

class TextSink final : public SnapshotSink {
 public:
  bool write(std::string_view bytes) override {
    text += bytes;
    return text.size() <= bytes_max;
  }
  std::string text;
  std::size_t bytes_max = std::size_t{1} << 30;
};

/// Everything that a snapshot says, as lines.
class Transcript final : public SnapshotHandler {
 public:
  void on_head(const SnapshotHead& head) override {
    text += "head " + std::to_string(head.written_at.get()) + " " + std::to_string(head.last_cas) +
            "\n";
  }
  void on_item(const SnapshotItem& item) override {
    text += "item " + std::string(item.key) + " " + std::to_string(item.value_bytes) + " " +
            std::to_string(item.client_flags) + " " + std::to_string(item.exptime.get()) + " " +
            std::to_string(item.cas) + " " + std::to_string(item.marks) + " ";
  }
  void on_value(std::string_view bytes) override { text += bytes; }
  void on_item_end() override { text += "\n"; }

  std::string text;
};

struct Entry {
  std::string key;
  std::string value;
  std::uint8_t marks = 0;
};

std::string snapshot_of(const std::vector<Entry>& entries) {
  TextSink sink;
  SnapshotWriter writer(sink, {.written_at = Instant{77}, .last_cas = 1'000'000'000'000});
  for (const Entry& entry : entries) {
    writer.add({.key = entry.key,
                .cas = 0x0102030405060708,
                .value_bytes = static_cast<std::uint32_t>(entry.value.size()),
                .client_flags = 0xfffffffe,
                .exptime = Instant{123},
                .marks = entry.marks});
    writer.add_value(entry.value);
  }
  writer.finish();
  EXPECT_FALSE(writer.has_failed());
  EXPECT_EQ(writer.items(), entries.size());
  return sink.text;
}

struct Outcome {
  std::string transcript;
  std::string error;
  std::uint64_t at = 0;
};

Outcome read(const test::Pieces& pieces) {
  Transcript transcript;
  SnapshotReader reader(transcript);
  bool is_good = true;
  for (const std::string_view piece : pieces) {
    is_good = is_good && reader.take(piece);
  }
  is_good = is_good && reader.finish();
  EXPECT_EQ(is_good, !reader.error());
  Outcome outcome{.transcript = transcript.text, .error = {}};
  if (reader.error()) {
    outcome.error = reader.error()->text;
    outcome.at = reader.error()->at;
  }
  return outcome;
}
Outcome read(const std::string& bytes) {
  return read(test::Pieces{bytes});
}

/// Bytes of a payload, with the head that belongs to them.
std::string block(SnapshotBlock kind, std::uint64_t number, std::string_view payload) {
  const SnapshotBlockHead head = compose_snapshot_block_head(kind, number, payload);
  return std::string(head.data(), head.size()).append(payload);
}
std::string header() {
  const SnapshotHeader bytes = compose_snapshot_header({});
  return {bytes.data(), bytes.size()};
}
std::string item_head(std::uint8_t marks, std::uint8_t key_bytes, std::uint32_t value_bytes) {
  std::string head(kSnapshotItemHeadBytes, '\0');
  head[0] = static_cast<char>(marks);
  head[1] = static_cast<char>(key_bytes);
  put_number(head.data() + 4, value_bytes);
  return head;
}
std::string end_of(std::uint64_t items, std::uint64_t bytes) {
  std::string end(kSnapshotEndBytes, '\0');
  put_number(end.data(), items);
  put_number(end.data() + 8, bytes);
  return end;
}

TEST(Snapshot, SaysWhatWasWritten) {
  const Outcome outcome = read(snapshot_of({{"a", "one", kSnapshotStale}, {"bc", ""}}));
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.transcript,
            "head 77 1000000000000\nitem a 3 4294967294 123 72623859790382856 2 one\n"
            "item bc 0 4294967294 123 72623859790382856 0 \n");
  EXPECT_EQ(read(snapshot_of({})).transcript, "head 77 1000000000000\n");
}

TEST(Snapshot, IsReadAlikeHoweverItIsCut) {
  const std::string bytes = snapshot_of({{"key", "value"}, {"k", std::string(60, 'v')}});
  const std::string whole = read(bytes).transcript;
  for (const test::Pieces& pieces : test::all_cuts(bytes)) {
    const Outcome outcome = read(pieces);
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.transcript, whole);
  }
}

TEST(Snapshot, ItemsGoOverTheEndsOfBlocks) {
  for (int shift = 0; shift < 40; ++shift) {
    const std::size_t first =
        kSnapshotPayloadBytesMax - kSnapshotItemHeadBytes - 1 - static_cast<std::size_t>(shift);
    const std::string bytes = snapshot_of({{"a", std::string(first, 'x')},
                                           {"key-of-ten", "v"},
                                           {"c", std::string(3 * kSnapshotPayloadBytesMax, 'y')}});
    const Outcome outcome = read(bytes);
    EXPECT_EQ(outcome.error, "") << shift;
    EXPECT_NE(outcome.transcript.find("\nitem key-of-ten 1 4294967294 123 72623859790382856 0 v\n"),
              std::string::npos)
        << shift;
  }
}

TEST(Snapshot, CutOffAnywhereIsRefused) {
  const std::string bytes = snapshot_of({{"key", "value"}, {"other", "text"}});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Outcome outcome = read(bytes.substr(0, size));
    EXPECT_EQ(outcome.error,
              "the snapshot is cut off: it has " + std::to_string(size) + " bytes and no end");
    EXPECT_EQ(outcome.at, size);
  }
}

TEST(Snapshot, AnyDamagedBitIsNoticed) {
  const std::string bytes = snapshot_of({{"key", "value"}, {"other", "text"}});
  for (std::size_t at = 0; at < bytes.size() * 8; ++at) {
    // Reserved bytes of the header are under its checksum as well.
    std::string damaged = bytes;
    damaged[at / 8] = static_cast<char>(damaged[at / 8] ^ (1 << (at % 8)));
    EXPECT_NE(read(damaged).error, "") << at;
  }
}

TEST(Snapshot, BlocksCannotChangePlacesOrBeLeftOut) {
  const std::string item = item_head(0, 1, 0) + "k";
  const std::string other = item_head(0, 1, 0) + "l";
  const std::string end = end_of(2, item.size() * 2);
  EXPECT_EQ(read(header() + block(SnapshotBlock::Items, 0, item) +
                 block(SnapshotBlock::Items, 1, other) + block(SnapshotBlock::End, 2, end))
                .error,
            "");
  EXPECT_EQ(read(header() + block(SnapshotBlock::Items, 1, other) +
                 block(SnapshotBlock::Items, 0, item) + block(SnapshotBlock::End, 2, end))
                .error,
            "block 0 is damaged: its checksum does not fit");
  EXPECT_EQ(
      read(header() + block(SnapshotBlock::Items, 0, item) + block(SnapshotBlock::End, 1, end))
          .error,
      "the end says 2 items of 50 bytes; there were 1 of 25");
}

TEST(Snapshot, SaysWhatDoesNotFitAndWhere) {
  std::string old = header();
  put_number(old.data() + 8, std::uint32_t{2});
  std::string long_header = header();
  put_number(long_header.data() + 12, std::uint32_t{41});
  std::string kind(block(SnapshotBlock::Items, 0, "x"));
  put_number(kind.data(), std::uint32_t{3});
  std::string huge(block(SnapshotBlock::Items, 0, "x"));
  put_number(huge.data() + 4, static_cast<std::uint32_t>(kSnapshotPayloadBytesMax + 1));
  std::string empty(block(SnapshotBlock::Items, 0, ""));
  const auto items = [](const std::string& payload) {
    return header() + block(SnapshotBlock::Items, 0, payload);
  };
  const struct {
    std::string bytes;
    std::uint64_t at;
    std::string error;
  } cases[] = {
      {std::string(100, 'x'), 0, "this is no snapshot of kvferry, which begins with KVFSNAP"},
      {old, 8, "the snapshot has version 2; this program reads version 1"},
      {long_header, 12, "the header says that it has 41 bytes; allowed are 40"},
      {header() + kind, 40, "block 0 is of kind 3; allowed are 1 (items) and 2 (the end)"},
      {header() + huge, 44, "block 0 says that it has 262145 bytes; allowed are 1 to 262144"},
      {header() + empty, 44, "block 0 says that it has 0 bytes; allowed are 1 to 262144"},
      {header() + block(SnapshotBlock::End, 0, "x"), 44,
       "block 0 says that it has 1 bytes; allowed are 16 to 16"},
      {items(item_head(16, 1, 0) + "k"), 56, "item 0 has marks that this program does not know"},
      {items(item_head(0, 1, 0) + "k" + item_head(0, 0, 0)), 82,
       "the key of item 1 has 0 bytes; allowed are 1 to 250"},
      {items(item_head(0, 251, 0)), 57, "the key of item 0 has 251 bytes; allowed are 1 to 250"},
      {items(item_head(0, 1, kSnapshotValueBytesMax + 1)), 60,
       "the value of item 0 has 1073741825 bytes; allowed are up to 1073741824"},
      {items(item_head(0, 9, 0)) + block(SnapshotBlock::End, 1, end_of(0, 24)), 96,
       "the snapshot ends within item 0"},
      {snapshot_of({}) + "x", 72, "there are bytes behind the end of the snapshot"},
  };
  for (const auto& each : cases) {
    const Outcome outcome = read(each.bytes);
    EXPECT_EQ(outcome.error, each.error);
    EXPECT_EQ(outcome.at, each.at) << each.error;
  }
}

TEST(Snapshot, AWriterStopsWhenItsSinkDoes) {
  TextSink sink;
  sink.bytes_max = kSnapshotPayloadBytesMax;
  SnapshotWriter writer(sink, {});
  EXPECT_FALSE(writer.has_failed());
  const std::string value(kSnapshotPayloadBytesMax * 3, 'x');
  writer.add({.key = "k", .value_bytes = static_cast<std::uint32_t>(value.size())});
  writer.add_value(value);
  EXPECT_TRUE(writer.has_failed());
  const std::size_t size = sink.text.size();
  writer.finish();
  EXPECT_EQ(sink.text.size(), size);
}

}  // namespace
}  // namespace kvferry::store
