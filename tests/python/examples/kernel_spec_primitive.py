from netcl.autograd.compiler import register_primitive
from netcl.core import KernelSpec
spec = KernelSpec(name="my_op", src="...")
prg = spec.build(queue)
# Tell the autograd system how to differentiate through my_op.
register_primitive(
    name="my_op",
    forward=lambda args, attrs: f"MY_OP({args[0]}, {args[1]})",
    backward=lambda args, grad_var, attrs, out_var: [
        f"MUL({grad_var}, {args[1]})",
        f"MUL({grad_var}, {args[0]})",
    ],
    arity=2,
    fusible=True,
)
