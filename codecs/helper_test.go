package codecs_test

import "context"

var t0 = context.Background()
