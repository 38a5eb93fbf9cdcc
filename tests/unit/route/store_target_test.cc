#include "route/store_target.h"

#include <gtest/gtest.h>

TEST(StoreTarget, X) {}
