local_size = autotuner.lookup("matmul_small", (256, 256))
# local_size = 64
prg.matmul_small(queue, (256, 256), (local_size,),
                 in_a, in_b, out_c)
