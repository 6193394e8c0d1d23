"""Buffer pools and single buffers."""

from .._netcl import (
    Buffer,
    BufferHandle,
    BufferPool,
    PersistentBufferPool,
    PinnedBufferPool,
    PoolStats,
    create_pinned_buffer,
    create_zero_copy_buffer,
    get_persistent_pool,
    get_pinned_pool,
    has_svm_support,
    is_integrated_gpu,
)

__all__ = [
    "Buffer",
    "BufferHandle",
    "BufferPool",
    "PersistentBufferPool",
    "PinnedBufferPool",
    "PoolStats",
    "create_pinned_buffer",
    "create_zero_copy_buffer",
    "get_persistent_pool",
    "get_pinned_pool",
    "has_svm_support",
    "is_integrated_gpu",
]
