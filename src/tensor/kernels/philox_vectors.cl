// philox.cl for BLOCKS neighbouring blocks at once, on CPUs. Defines: BLOCKS, 4 or 8, as many
// ulongs as a vector has. A word lives in the lower half of a ulong: the product of two words is
// then one instruction, and its upper half, which the next product does not look at, may hold
// anything.

#define WORDS_OF_BLOCKS (4 * BLOCKS)
#if BLOCKS == 8
#define PAIR_WORDS 16
#define BLOCK_LANES ((blocks_t)(0, 1, 2, 3, 4, 5, 6, 7))
#else
#define PAIR_WORDS 8
#define BLOCK_LANES ((blocks_t)(0, 1, 2, 3))
#endif
#define GLUE_WORDS_(a, b) a##b
#define GLUE_WORDS(a, b) GLUE_WORDS_(a, b)
typedef GLUE_WORDS(ulong, BLOCKS) blocks_t;
#define STORE_WORDS(v, j, p) \
  GLUE_WORDS(vstore, PAIR_WORDS)(GLUE_WORDS(as_uint, PAIR_WORDS)(v), j, p)
#define LOWER_WORDS(x) ((x) & (blocks_t)0xffffffffUL)

// Words 4 * first ... 4 * (first + BLOCKS) - 1.
void philox_blocks(ulong first, uint2 key, uint* words) {
  const blocks_t block = (blocks_t)first + BLOCK_LANES;
  blocks_t x = block, y = block >> 32, z = 0, w = 0;
  for (int round = 0; round < 10; ++round) {
    const blocks_t product0 = LOWER_WORDS(x) * (blocks_t)0xD2511F53UL;
    const blocks_t product1 = LOWER_WORDS(z) * (blocks_t)0xCD9E8D57UL;
    x = (product1 >> 32) ^ y ^ (blocks_t)(ulong)key.x;
    z = (product0 >> 32) ^ w ^ (blocks_t)(ulong)key.y;
    y = product1;
    w = product0;
    key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
  }
  const blocks_t xy = LOWER_WORDS(x) | (y << 32), zw = LOWER_WORDS(z) | (w << 32);
  blocks_t pairs;
  pairs.even = xy.lo;
  pairs.odd = zw.lo;
  STORE_WORDS(pairs, 0, words);
  pairs.even = xy.hi;
  pairs.odd = zw.hi;
  STORE_WORDS(pairs, 1, words);
}
