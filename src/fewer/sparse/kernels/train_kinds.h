/* One element type and instruction set, for columns of 16 and of 32 bits. */

#define REAL TYPE
#define LANES ((int)(sizeof(VEC) / sizeof(REAL)))
#define INDEX uint16_t
#define KIND narrow
#include "train_rows.h"
#undef INDEX
#undef KIND
#define INDEX int32_t
#define KIND wide
#include "train_rows.h"
#undef INDEX
#undef KIND
#undef REAL
#undef LANES
#undef MASK
#undef VEC
#undef TYPE
