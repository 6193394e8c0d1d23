from netcl.core.memory import BufferPool
pool = BufferPool(context)
h = pool.allocate(nbytes)  # -> BufferHandle, possibly reused
h.release()  # back to the pool
print(pool.stats.hits, pool.stats.misses, pool.stats.bytes_cached)
