#include "protocol/http/response.h"

#include "base/check.h"

namespace kvferry::http {

namespace {

void append_field(std::string& out, std::string_view name, std::string_view value) {
  KVF_DCHECK(name.find_first_of("\r\n:") == std::string_view::npos);
  KVF_DCHECK(value.find_first_of("\r\n") == std::string_view::npos);
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

}  // namespace

std::string_view reason_of(int status) noexcept {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 422:
      return "Unprocessable Content";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

void compose_response(std::string& out, const Response& response, const ResponseFraming& framing) {
  KVF_DCHECK(response.status >= 200);
  KVF_DCHECK(response.status <= 599);
  out += "HTTP/1.1 ";
  out += std::to_string(response.status);
  out += ' ';
  out += reason_of(response.status);
  out += "\r\n";
  // RFC 9110 section 8.6: a 204 has no Content-Length and no body.
  const bool has_body = response.status != 204;
  if (has_body) {
    append_field(out, "Content-Type", response.content_type);
    append_field(out, "Content-Length", std::to_string(response.body.size()));
  }
  // State of a running program: a cache in between would only ever show the past.
  append_field(out, "Cache-Control", "no-store");
  append_field(out, "X-Content-Type-Options", "nosniff");
  if (!framing.keep_alive) {
    append_field(out, "Connection", "close");
  } else if (framing.is_http10) {
    append_field(out, "Connection", "keep-alive");
  }
  for (const auto& [name, value] : response.fields) {
    append_field(out, name, value);
  }
  out += "\r\n";
  if (has_body && !framing.is_head) {
    out += response.body;
  }
}

}  // namespace kvferry::http
