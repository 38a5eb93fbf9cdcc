#include "lua/log_line.h"

#include <fmt/format.h>

#include "call/answerer.h"

namespace kvferry::lua {

using route::ResultClass;
using route::RouteReply;

namespace {

std::string_view class_name(ResultClass result_class) {
  switch (result_class) {
    case ResultClass::Ok:
      return "ok";
    case ResultClass::Any:
      return "any";
    case ResultClass::Good:
    case ResultClass::None:
      break;
  }
  return "good";
}

}  // namespace

std::string compose_request_line(const RouteReply* reply, const route::RouteRequest* request,
                                 std::string_view detail, int client_fd) {
  const std::string_view line =
      request == nullptr ? std::string_view{} : request->line_text().substr(0, kLogRequestBytesMax);
  detail = detail.substr(0, kLogDetailBytesMax);
  if (reply == nullptr) {
    return fmt::format(
        "type=proxy_req elapsed=0 type=0 code=0 status=0 res=good cfd={} be=: detail={} req={}",
        client_fd, detail, line);
  }
  return fmt::format(
      "type=proxy_req elapsed={} type={} code={} status={} res={} cfd={} be={} detail={} req={}",
      reply->elapsed.count(), static_cast<unsigned>(reply->type()),
      static_cast<unsigned>(reply->code()), reply->is_ok() ? 0 : -1,
      class_name(reply->natural_class()), client_fd,
      reply->answerer == nullptr ? std::string_view("internal:0") : reply->answerer->place, detail,
      line);
}

std::string one_line(std::string_view text) {
  std::string line(text.substr(0, kLogMessageBytesMax));
  for (char& byte : line) {
    if (byte == '\n' || byte == '\r') {
      byte = ' ';
    }
  }
  return line;
}

}  // namespace kvferry::lua
