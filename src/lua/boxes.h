// What the userdata of scripts hold: pointers to the objects of the request path, or those objects
// themselves.
//
// The request that a slot serves and the replies to it are shown as tickets (tickets.h); the
// functions here take both. Boxes are for what scripts make: objects of rctx, whose boxes are cut
// off (the pointer nulled) when their slot goes, and objects that are owned by their box.
#pragma once

#include "lua/stack.h"
#include "route/route_reply.h"
#include "route/route_request.h"

namespace kvferry::lua {

inline constexpr const char* kRequestType = "mcp.request";
inline constexpr const char* kReplyType = "mcp.response";

struct RequestBox {
  route::RouteRequest* request = nullptr;  // Null: its client request is over.
  bool is_owned = false;                   // Made by mcp.request(): lies behind the box.
};
struct ReplyBox {
  route::RouteReply* reply = nullptr;
  bool is_owned = false;  // Lies behind the box.
};

/// Pushes a box around `request`; the caller cuts it off in time through what is returned.
RequestBox* push_request(lua_State* lua, route::RouteRequest& request);
ReplyBox* push_reply(lua_State* lua, route::RouteReply& reply);
/// Pushes a new reply that the box owns: it lives as long as scripts refer to it.
route::RouteReply& push_owned_reply(lua_State* lua);
/// Argument `index`, which must be a live request or reply; raises otherwise.
route::RouteRequest& check_request(lua_State* lua, int index);
route::RouteReply& check_reply(lua_State* lua, int index);
/// Null when it is no live one; raises nothing.
route::RouteRequest* request_at(lua_State* lua, int index);
route::RouteReply* reply_at(lua_State* lua, int index);

/// Bytes that may begin a meta flag where scripts name one.
inline bool is_flag_letter(char byte) {
  return byte >= 'A' && byte <= 'z';
}
/// Argument `index`, which must be one such byte; raises otherwise.
char check_flag_letter(lua_State* lua, int index);

/// Adds the types and mcp.request to the table at the top of the stack.
void define_request(lua_State* lua);
void define_reply(lua_State* lua);
/// Adds mcp.req_inspector_new, res_inspector_new, req_mutator_new, res_mutator_new.
void define_inspectors(lua_State* lua);
void define_mutators(lua_State* lua);

}  // namespace kvferry::lua
