// hiredis, the client in C: single commands, a pipeline of its own appended commands, SCAN, a big value.
// Usage: hiredis PORT. Ends with status 0 when every answer was right.
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kItems = 300, kBigBytes = 800000 };

static void must(int is_true, const char* what) {
  if (!is_true) {
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
  }
}

static void is_text(redisReply* reply, const char* text, const char* what) {
  must(reply != NULL && reply->str != NULL && strcmp(reply->str, text) == 0, what);
  freeReplyObject(reply);
}

static void use_pipeline(redisContext* client) {
  for (int i = 0; i < kItems; ++i) {
    redisAppendCommand(client, "SET hi:many:%d value-%d", i, i);
    redisAppendCommand(client, "GET hi:many:%d", i);
  }
  for (int i = 0; i < kItems; ++i) {
    void* reply = NULL;
    char wanted[32];
    snprintf(wanted, sizeof wanted, "value-%d", i);
    must(redisGetReply(client, &reply) == REDIS_OK, "a reply of the pipeline");
    is_text(reply, "OK", "SET of the pipeline");
    must(redisGetReply(client, &reply) == REDIS_OK, "a reply of the pipeline");
    is_text(reply, wanted, "GET of the pipeline");
  }
}

static void use_scan(redisContext* client) {
  char cursor[32] = "0";
  int found = 0;
  do {
    redisReply* reply = redisCommand(client, "SCAN %s MATCH hi:many:* COUNT 20", cursor);
    must(reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2, "SCAN");
    snprintf(cursor, sizeof cursor, "%s", reply->element[0]->str);
    found += (int)reply->element[1]->elements;
    freeReplyObject(reply);
  } while (strcmp(cursor, "0") != 0);
  must(found == kItems, "SCAN finds all");
}

static void use_big_value(redisContext* client) {
  char* big = malloc(kBigBytes);
  must(big != NULL, "memory");
  for (int i = 0; i < kBigBytes; ++i) {
    big[i] = (char)i;
  }
  is_text(redisCommand(client, "SET hi:big %b", big, (size_t)kBigBytes), "OK", "SET of a big value");
  redisReply* reply = redisCommand(client, "GET hi:big");
  must(reply != NULL && reply->len == kBigBytes && memcmp(reply->str, big, kBigBytes) == 0, "a big value");
  freeReplyObject(reply);
  free(big);
}

int main(int argc, char** argv) {
  must(argc == 2, "usage");
  redisContext* client = redisConnect("127.0.0.1", atoi(argv[1]));
  must(client != NULL && client->err == 0, "connect");
  is_text(redisCommand(client, "FLUSHALL"), "OK", "FLUSHALL");
  is_text(redisCommand(client, "SET hi:a %s EX 60", "first words"), "OK", "SET");
  is_text(redisCommand(client, "GET hi:a"), "first words", "GET");
  redisReply* nothing = redisCommand(client, "GET hi:none");
  must(nothing != NULL && nothing->type == REDIS_REPLY_NIL, "GET of nothing");
  freeReplyObject(nothing);
  redisReply* sum = redisCommand(client, "INCRBY hi:n 5");
  must(sum != NULL && sum->integer == 5, "INCRBY");
  freeReplyObject(sum);
  use_pipeline(client);
  use_scan(client);
  use_big_value(client);
  redisFree(client);
  return 0;
}
