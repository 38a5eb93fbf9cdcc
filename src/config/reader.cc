#include "config/reader.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "config/address_text.h"
#include "config/scalar.h"
#include "config/suggest.h"

namespace kvferry::config {
namespace {

/// Longest piece of a wrong value that a message repeats.
constexpr std::size_t kFoundBytesMax = 80;

std::string found(std::string_view text) {
  const std::string out = printable(text, kFoundBytesMax);
  return out.size() < text.size() ? out + "..." : out;
}

std::string expectation(const KeyInfo& info) {
  switch (info.type) {
    case ValueType::Millis:
      return fmt::format(
          "must be a number of milliseconds from {} to {}, or a duration such as "
          "400ms",
          info.least, info.most);
    case ValueType::Duration:
      return fmt::format("must be a duration from {} to {} with its unit, such as 250ms or 2s",
                         millis_text(info.least), millis_text(info.most));
    case ValueType::Bytes:
      return fmt::format("must be a size from {} to {}, such as 65536, 16kb, 16mb or 2gb",
                         bytes_text(static_cast<std::uint64_t>(info.least)),
                         bytes_text(static_cast<std::uint64_t>(info.most)));
    default:
      return {};
  }
}

WholeNumber parse_number(const KeyInfo& info, std::string_view text) {
  switch (info.type) {
    case ValueType::Millis:
      return parse_millis(text, false);
    case ValueType::Duration:
      return parse_millis(text, true);
    case ValueType::Bytes:
      return parse_bytes(text);
    default:
      return parse_whole(text);
  }
}

std::string_view dialect_text(Dialect dialect) {
  switch (dialect) {
    case Dialect::Nutcracker:
      return "nutcracker";
    case Dialect::Dynomite:
      return "dynomite";
    case Dialect::Kvferry:
      break;
  }
  return "kvferry";
}

}  // namespace

std::string join(std::span<const std::string_view> words) {
  std::string out;
  for (const std::string_view word : words) {
    out += out.empty() ? "" : ", ";
    out += word;
  }
  return out;
}

void Reader::enter_pool(std::string name, Dialect dialect, bool dialect_is_written) {
  pool_ = std::move(name);
  dialect_ = dialect;
  dialect_is_written_ = dialect_is_written;
}

void Reader::leave_pool() {
  enter_pool({}, Dialect::Kvferry, false);
}

Position Reader::position(const Node& node) const {
  return {source_.name(), node.start.line, node.start.column};
}

void Reader::fail(const Node& node, std::string_view code, std::string_view key,
                  std::string message, std::string_view hint) {
  note(Severity::Error, node, code, key, std::move(message), hint);
}

void Reader::refer_to_pool(const Node& node) {
  state_.pool_references.push_back(
      {node.text, make_problem(Severity::Error, node, "E-missing", "routes",
                               fmt::format("there is no pool '{}'", found(node.text)), {})});
}

void Reader::expect_reference(const std::string& name, const Node& node) {
  state_.pools_without_listener.push_back(
      {name,
       make_problem(Severity::Error, node, "E-missing", "listen", "'listen' is missing",
                    "add the address for clients, such as listen: 127.0.0.1:22121, or name the "
                    "pool in a route")});
}

Problem Reader::make_problem(Severity severity, const Node& node, std::string_view code,
                             std::string_view key, std::string message,
                             std::string_view hint) const {
  Problem problem;
  problem.severity = severity;
  problem.code = std::string(code);
  problem.where = position(node);
  problem.width = node.width();
  problem.pool = pool_;
  problem.key = std::string(key);
  problem.message = std::move(message);
  problem.hint = std::string(hint);
  problem.source_line = source_.line(node.start.line);
  return problem;
}

void Reader::note(Severity severity, const Node& node, std::string_view code, std::string_view key,
                  std::string message, std::string_view hint) {
  state_.problems.add(make_problem(severity, node, code, key, std::move(message), hint));
}

void Reader::note_once(Severity severity, const Node& node, std::string_view code,
                       std::string_view key, std::string message) {
  if (state_.codes_noted.insert(std::string(code)).second) {
    note(severity, node, code, key, std::move(message));
  }
}

Problem Reader::place_of(const Node& node, std::string_view key) const {
  return make_problem(Severity::Error, node, {}, key, {}, {});
}

void Reader::fail_value(const Value& value, std::string_view code, std::string message) {
  fail(*value.node, code, value.info->name, std::move(message), value.info->hint);
}

void Reader::read_entries(const Node& node, std::span<const KeyInfo* const> infos,
                          const MappingShape& shape, const Setter& set) {
  std::map<std::string_view, std::uint32_t> seen;
  for (const Node::Entry& entry : node.entries) {
    if (is_full()) {
      return;
    }
    const Node& key = *entry.key;
    const auto info = std::find_if(infos.begin(), infos.end(), [&key](const KeyInfo* candidate) {
      return candidate->name == key.text;
    });
    if (info == infos.end()) {
      if (!fail_reserved(key, shape)) {
        fail_unknown(key, infos, shape);
      }
      continue;
    }
    if (!check_repeated(key, (*info)->type == ValueType::Mapping, shape, seen)) {
      continue;
    }
    if (const std::optional<Value> value = read_value(**info, key, *entry.value)) {
      set(static_cast<std::size_t>(info - infos.begin()), *value);
    }
  }
}

bool Reader::check_repeated(const Node& key, bool is_group, const MappingShape& shape,
                            std::map<std::string_view, std::uint32_t>& seen) {
  const auto [first, is_new] = seen.emplace(key.text, key.start.line);
  if (!is_new) {
    fail(key, "E-dup", key.text,
         fmt::format("'{}' is given twice; first at line {}", key.text, first->second),
         "remove one of the two");
    return false;
  }
  // Several files may each hold a part of a group such as `log`.
  if (!shape.is_process || is_group) {
    return true;
  }
  const auto [other, is_first] =
      state_.process_keys_seen.emplace(fmt::format("{}{}", shape.path, key.text), position(key));
  if (!is_first) {
    fail(key, "E-dup", key.text,
         fmt::format("'{}' is given twice; first at {}", key.text, other->second.to_string()),
         "settings of the process are given in one file only");
  }
  return is_first;
}

void Reader::fail_unknown(const Node& key, std::span<const KeyInfo* const> infos,
                          const MappingShape& shape) {
  std::vector<std::string_view> names;
  for (const KeyInfo* info : infos) {
    names.push_back(info->name);
  }
  const std::string_view near = suggest(key.text, names);
  if (!near.empty()) {
    Problem problem = make_problem(
        Severity::Error, key, "E-unknown", key.text,
        fmt::format("unknown key '{}'; did you mean '{}'?", found(key.text), near), {});
    if (is_secret_key(near)) {
      problem.source_line = "***";  // A misspelt name does not make the password public.
    }
    state_.problems.add(std::move(problem));
    return;
  }
  std::sort(names.begin(), names.end());
  fail(key, "E-unknown", key.text,
       fmt::format("unknown key '{}'; the keys of {} are {}", found(key.text), shape.noun,
                   join(names)));
}

bool Reader::fail_reserved(const Node& key, const MappingShape& shape) {
  const auto reserved =
      std::find_if(shape.reserved.begin(), shape.reserved.end(),
                   [&key](const ReservedKey& candidate) { return candidate.name == key.text; });
  if (reserved == shape.reserved.end()) {
    return false;
  }
  if (reserved->dialect == Dialect::Dynomite) {
    fail(key, "E-dialect", key.text,
         fmt::format("'{}' belongs to Dynomite files, but this pool {} {}", key.text,
                     dialect_is_written_ ? "says dialect:" : "has the dialect",
                     dialect_text(dialect_)));
    return true;
  }
  fail(key, "E-unsupported", key.text,
       fmt::format("'{}' is not available yet in this version", key.text), "remove the key");
  return true;
}

std::optional<Value> Reader::read_value(const KeyInfo& info, const Node& key_node,
                                        const Node& value_node) {
  if (value_node.is_absent()) {
    fail(key_node, "E-empty", info.name, fmt::format("'{}' has no value", info.name),
         "write a value behind the colon, or remove the key");
    return std::nullopt;
  }
  if (!check_node_kind(info, key_node, value_node)) {
    return std::nullopt;
  }
  Value value;
  value.info = &info;
  value.key_node = &key_node;
  value.node = &value_node;
  value.text = value_node.text;
  if (!convert(info, value)) {
    return std::nullopt;
  }
  return value;
}

bool Reader::check_node_kind(const KeyInfo& info, const Node& key_node, const Node& value_node) {
  switch (info.type) {
    case ValueType::Mapping:
      if (!value_node.is_mapping()) {
        fail(value_node, "E-type", info.name,
             fmt::format("'{}' must be a mapping, found {}", info.name, value_node.kind_text()),
             info.hint);
        return false;
      }
      return true;
    case ValueType::Servers:
      if (!value_node.is_sequence()) {
        fail(value_node, "E-list", info.name,
             fmt::format("'{}' must be a list; write \"- 10.0.0.1:11211:1\" below it", info.name));
        return false;
      }
      return true;
    case ValueType::List:
      if (!value_node.is_sequence()) {
        fail(value_node, "E-list", info.name,
             fmt::format("'{}' must be a list, found {}", info.name, value_node.kind_text()),
             info.hint);
        return false;
      }
      return true;
    case ValueType::Listen:
    case ValueType::Route:
    case ValueType::Routes:
      return true;  // The setter tells the shapes apart.
    default:
      break;
  }
  if (value_node.is_scalar()) {
    return true;
  }
  const bool is_map_form = info.name == "on_down" && value_node.is_mapping();
  fail(is_map_form ? key_node : value_node, is_map_form ? "E-unsupported" : "E-type", info.name,
       is_map_form
           ? fmt::format("'{}' with a mapping is not available yet in this version; it may "
                         "be one of {}",
                         info.name, join(info.choices))
           : fmt::format("'{}' must be one value, found {}", info.name, value_node.kind_text()),
       info.hint);
  return false;
}

bool Reader::convert(const KeyInfo& info, Value& value) {
  switch (info.type) {
    case ValueType::Bool:
      if (const std::optional<bool> flag = parse_bool(value.text)) {
        value.flag = *flag;
        return true;
      }
      fail_value(
          value, "E-bool",
          fmt::format("'{}' must be true or false, found '{}'", info.name, found(value.text)));
      return false;
    case ValueType::Int:
    case ValueType::Millis:
    case ValueType::Duration:
    case ValueType::Bytes:
      return convert_number(info, value);
    case ValueType::Enum:
      return convert_enum(info, value);
    case ValueType::TwoBytes:
      if (value.text.size() == 2) {
        return true;
      }
      fail_value(
          value, "E-tag",
          fmt::format("'{}' must be exactly two bytes, found {}", info.name, value.text.size()));
      return false;
    case ValueType::Secret:
      return convert_secret(value);
    case ValueType::Endpoint: {
      const AddressError error =
          parse_endpoint(value.text, {.port_zero_allowed = true}, value.endpoint);
      if (error.is_set()) {
        fail_value(
            value, error.code,
            error.names_key ? fmt::format("'{}' {}", info.name, error.message) : error.message);
      }
      return !error.is_set();
    }
    case ValueType::Text:
    case ValueType::Mapping:
    case ValueType::Servers:
    case ValueType::Listen:
    case ValueType::List:
    case ValueType::Route:
    case ValueType::Routes:
      break;
  }
  return true;
}

bool Reader::convert_number(const KeyInfo& info, Value& value) {
  const WholeNumber number = parse_number(info, value.text);
  const bool is_number = number.state != WholeNumber::State::NotNumber;
  const bool is_inside = number.state == WholeNumber::State::Good && number.value >= info.least &&
                         number.value <= info.most;
  if (is_inside) {
    value.number = number.value;
    return true;
  }
  const std::string_view code = is_number ? "E-range" : "E-num";
  if (info.type == ValueType::Millis) {
    fail_value(value, code, fmt::format("'{}' {}", info.name, expectation(info)));
  } else if (info.type != ValueType::Int) {
    fail_value(value, code,
               fmt::format("'{}' {}, found '{}'", info.name, expectation(info), found(value.text)));
  } else if (is_number) {
    fail_value(value, code,
               fmt::format("'{}' must be from {} to {}, found {}", info.name, info.least, info.most,
                           found(value.text)));
  } else {
    fail_value(
        value, code,
        fmt::format("'{}' must be a whole number, found '{}'", info.name, found(value.text)));
  }
  return false;
}

bool Reader::convert_enum(const KeyInfo& info, Value& value) {
  const auto choice = std::find(info.choices.begin(), info.choices.end(), value.text);
  if (choice != info.choices.end()) {
    value.choice = static_cast<std::size_t>(choice - info.choices.begin());
    return true;
  }
  if (std::find(info.later_choices.begin(), info.later_choices.end(), value.text) !=
      info.later_choices.end()) {
    fail_value(value, "E-unsupported",
               fmt::format("'{}: {}' is not available yet in this version; it may be one of {}",
                           info.name, value.text, join(info.choices)));
    return false;
  }
  const std::string_view near = suggest(value.text, info.choices);
  const std::string question = near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
  fail_value(value, "E-enum",
             fmt::format("'{}' must be one of {}, found '{}'{}", info.name, join(info.choices),
                         found(value.text), question));
  return false;
}

bool Reader::convert_secret(Value& value) {
  constexpr std::string_view kFilePrefix = "file:";
  constexpr std::string_view kEnvironmentPrefix = "env:";
  std::string_view text = value.text;
  Secret::Kind kind = Secret::Kind::Text;
  if (text.starts_with(kFilePrefix)) {
    kind = Secret::Kind::File;
    text.remove_prefix(kFilePrefix.size());
  } else if (text.starts_with(kEnvironmentPrefix)) {
    kind = Secret::Kind::Environment;
    text.remove_prefix(kEnvironmentPrefix.size());
  }
  const auto size = static_cast<std::int64_t>(text.size());
  if (size < value.info->least || size > value.info->most) {
    fail_value(value, "E-range",
               fmt::format("'{}' must have {} to {} bytes, found {}", value.info->name,
                           value.info->least, value.info->most, size));
    return false;
  }
  value.secret = {kind, std::string(text)};
  return true;
}

}  // namespace kvferry::config
