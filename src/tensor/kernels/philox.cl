// Philox 4x32 with 10 rounds: a block of four random words from a counter and a key. Included by
// every kernel that needs the numbers of Tensor::random; src/tensor/random.cpp is its twin.

uint4 philox(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    const uint high0 = mul_hi(0xD2511F53u, counter.x), low0 = 0xD2511F53u * counter.x;
    const uint high1 = mul_hi(0xCD9E8D57u, counter.z), low1 = 0xCD9E8D57u * counter.z;
    counter = (uint4)(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
  }
  return counter;
}
