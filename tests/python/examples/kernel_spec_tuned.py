spec = nc.KernelSpec(
    name="matmul_tiled",
    src="""__kernel void matmul_tiled(
        __global const float* a, __global const float* b,
        __global float* c, int M, int N, int K) {
        // ... tiled GEMM body ...
    }""",
    workgroup_size=None,  # autotune
)
prg = spec.build(queue)
# First call autotunes; subsequent calls use the cached size.
prg.run(queue, (M, N), None, a, b, c, M, N, K)
